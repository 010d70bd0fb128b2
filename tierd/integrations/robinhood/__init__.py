"""robinhood: files that are older than the changelog records, by its database."""
