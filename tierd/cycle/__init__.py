"""One cycle of the daemon: look, think, act in the open cases, judge what was done, and say it."""
