"""A plain reader of parameter files: what every sample must be.

It shares nothing with the exporter: it goes through the files line by line, with split and int. Slow and plain on
purpose.
"""
