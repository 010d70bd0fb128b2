"""Slurm: names, users and nodes of jobs, and the requests of its plugin and scripts."""
