"""``make stack``: everything together on one machine, on loopback, over a simulated cluster; Ctrl-C ends it."""
