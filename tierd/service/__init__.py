"""The daemon as a process: start and stop, signals and reload, the control socket and the port."""
