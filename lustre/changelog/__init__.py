"""Changelogs of an MDT: records, their binary form, and the character device that returns them."""
