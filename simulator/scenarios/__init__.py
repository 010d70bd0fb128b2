"""The library of scenarios: TOML files, each with a sentence on its purpose, and the code that reads them."""
