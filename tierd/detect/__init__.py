"""Pure: windows in, findings out, each with the numbers that made it."""
