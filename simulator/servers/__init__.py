"""Metadata and object storage targets: names, changelogs, layouts, objects, locks, journals and recovery."""
