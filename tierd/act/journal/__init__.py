"""The journal: an SQLite file with every act, what was there before it, and how it ended.

``schema`` has the tables, ``entry`` rows, ``writer`` the daemon's side, ``reader`` queries beside the daemon,
``connection`` the file, its lock and its errors.
"""

from tierd.act.journal.connection import JournalError
from tierd.act.journal.entry import Entry
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal

__all__ = ["Entry", "Journal", "JournalError", "JournalReader"]
