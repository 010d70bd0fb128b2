"""tierd's metrics about itself."""
