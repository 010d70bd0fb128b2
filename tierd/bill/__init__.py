"""What jobs cost each other: the bill of interference. This folder can be deleted, with its line in the registry."""
