"""What tierd shows Prometheus of itself."""
