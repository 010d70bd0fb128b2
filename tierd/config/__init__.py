"""What can be set, how it is read from files with all mistakes at once, and the resolved view of scopes."""
