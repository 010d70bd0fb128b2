"""Did it help? Keep, or undo."""
