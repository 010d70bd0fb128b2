"""The gate, the budget, the mover, the journal: the only code that changes a file system."""
