"""Client mounts: name and data operations, caches, read-ahead, and the connections to each target."""
