"""The journal: an SQLite file with every act, what was there before it, and how it ended.

``schema`` has the tables, ``entry`` rows, ``writer`` the daemon's side, ``reader`` queries beside the daemon,
``connection`` the file, its lock and its errors.
"""
