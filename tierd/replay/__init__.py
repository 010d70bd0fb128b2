"""``tierd replay TAPE``: what tierd would have found and planned, had it watched a recording."""
