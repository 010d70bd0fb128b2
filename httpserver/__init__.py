"""The HTTP server of the exporter and of tierd: bounded, with TLS, client certificates and basic authentication.

It is independent of Lustre and of the application, which is a WSGI callable. Everything else is a parameter.
"""
