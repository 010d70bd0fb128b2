"""Who may ask, and over what: TLS, client certificates and users, as ``--web.config.file`` says."""
