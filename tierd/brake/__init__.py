"""A rule of TBF slows a job until its files are elsewhere. This folder can be deleted, with its registry lines."""
