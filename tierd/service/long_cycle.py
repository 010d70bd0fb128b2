"""A cycle that lasts long is told once, with what it is waiting for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress

from tierd.act.entry import Entry
from tierd.act.journal_reader import JournalReader
from tierd.clock import Clock
from tierd.desk.board import Board
from tierd.text import quoted

TOLD_AFTER_SECONDS = 60.0


def described(act: Entry) -> str:
    """An act that is under way."""
    size = f", {act.size_bytes / 1e6:.0f} MB" if act.size_bytes else ""
    return f"{act.kind} of {quoted(act.place)}{size}"


class LongCycle:
    """Looks at the board, from a thread that is not the one that cycles."""

    def __init__(self, board: Board, reader: JournalReader, clock: Clock, say: Callable[[str], None]) -> None:
        self._board = board
        self._reader = reader
        self._clock = clock
        self._say = say
        self._told = 0.0
        """When the cycle began that was told of last."""

    def look(self) -> None:
        """Say what it waits for, of a cycle that has lasted long: a file that moves, or else the file system."""
        begun = self._board.cycle_begun_at
        lasted = self._clock.now() - begun
        if not begun or begun == self._told or lasted < TOLD_AFTER_SECONDS:
            return
        self._told = begun
        under_way = []
        with suppress(OSError, sqlite3.Error):
            under_way = [act for act in self._reader.under_way() if act.intended_at >= begun]
        what = "; ".join(described(act) for act in under_way)
        self._board.waits_for = what or (
            "the file system, or a server of it, does not answer (lfs check servers); it goes on when it does")
        self._say(f"a cycle has been under way for {lasted:.0f} s: {self._board.waits_for}")
