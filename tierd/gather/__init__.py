"""``tierd gather``: one exposition for a rack of exporters, with counters added up by job, pool and kind of node."""
