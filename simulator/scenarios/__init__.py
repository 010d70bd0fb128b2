"""The library of scenarios: TOML files, each with a sentence about what it teaches; and the code that reads them."""
