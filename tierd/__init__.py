"""The daemon: sense, detect, decide, act, verify."""
