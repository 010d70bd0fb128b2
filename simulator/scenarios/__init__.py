"""The library of scenarios: TOML files, each saying what it teaches."""
