"""``make stack``: all programs on the loopback of one machine, over a simulated cluster. Ctrl-C ends them."""
