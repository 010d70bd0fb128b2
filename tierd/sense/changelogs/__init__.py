"""Changelogs: records followed, checked for gaps, and counted by job and directory."""
