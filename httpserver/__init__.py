"""The HTTP server of the exporter and of tierd: bounded, with TLS, client certificates and basic authentication.

It knows neither Lustre nor what it serves: the application is a WSGI callable, and all else is a parameter.
"""
