"""Parameters of a node, as Prometheus exposition."""
