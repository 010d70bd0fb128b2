"""Pure: windows and facts in, findings out, each with its evidence."""
