"""Everything tierd observes: counters, changelog records, files and clients, each as values of ``tierd.model``."""
