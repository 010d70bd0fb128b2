"""File layouts: the model, and its forms as extended attribute, ``lfs setstripe`` options and YAML."""
