"""What tierd would have done in a past time. This folder can be deleted, with its line in the registry."""
