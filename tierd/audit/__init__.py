"""Settings of one node, compared with what the papers and Lustre's manual advise: ``tierctl audit``."""
