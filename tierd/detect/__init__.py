"""Pure functions with which policies find problems in windows and facts, and the model of interference."""
