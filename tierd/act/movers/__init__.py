"""Engines that give existing files another layout. All examine a file before and after, and report the same outcomes.

``lease`` works in this process, ``lfs`` runs ``lfs migrate --non-block``. Neither ever takes the blocking group lock:
it makes applications wait, and loses a truncate that comes while it is held.
"""
