"""The sources of tierd: counters, changelog records, files and clients, as values of ``tierd.model``."""
