"""PowerFlex below the OSTs: rebuilds, state and settings, by its gateway."""
