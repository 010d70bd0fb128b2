"""The outside world, as the model: two readings of counters make a window, changelog records make activity."""
