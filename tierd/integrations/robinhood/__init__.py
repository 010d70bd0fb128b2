"""robinhood: files that are older than the changelog records, from its database."""
