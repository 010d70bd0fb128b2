"""Judges whether an act helped: the verdict keeps it or undoes it."""
