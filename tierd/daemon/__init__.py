"""The daemon: its loop, remediations, process and service, the control socket, status, metrics and pages."""
