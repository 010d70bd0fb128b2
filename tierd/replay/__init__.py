"""``tierd replay TAPE``: shows what tierd would have found and planned during a recording."""
