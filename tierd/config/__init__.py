"""The settings of tierd, how they are read from files with all mistakes at once, and the resolved view of scopes."""
