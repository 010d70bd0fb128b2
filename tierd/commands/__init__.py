"""The commands of ``tierctl``, one a file: what it takes, and what it does."""
