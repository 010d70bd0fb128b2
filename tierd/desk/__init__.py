"""What the daemon answers to tierctl and to the page."""
