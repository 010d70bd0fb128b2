"""A simulated Lustre cluster in one process, with the parameter files, changelogs and file system of a real one."""
