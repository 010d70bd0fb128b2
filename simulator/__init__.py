"""A Lustre cluster in one process: the same parameter files, the same changelog, the same file system port."""
