"""Other programs of a site that tierd asks. Each folder can be deleted, with its line in the registry."""
