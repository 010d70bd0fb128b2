"""Engines that change the layout of existing files. All examine a file before and after, and report the same outcomes.

``lease`` works in this process, ``lfs`` runs ``lfs migrate --non-block``. Neither takes the blocking group lock: it
makes applications wait, and loses a truncate during the lock.
"""
