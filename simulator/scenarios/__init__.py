"""The library of scenarios: TOML files, each with a sentence on what it shows; and the code that reads them."""
