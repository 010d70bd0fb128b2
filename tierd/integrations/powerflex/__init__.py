"""PowerFlex below the OSTs: rebuilds, state and settings, from its gateway."""
