"""Grafana dashboards: small Python modules that write ``dashboards/json``, which is what sites load."""
