"""One collector a file; ``COLLECTORS`` lists them by hand."""
