"""Whether an act helped: the verdict that keeps it or undoes it."""
