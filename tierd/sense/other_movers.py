"""Who else moves files: a job of others under which several files of a directory got another layout.

>>> movers = OtherMovers(most=1000)
>>> for number in range(3):
...     movers.moved("/in", "lfs.1500", 20.0 + number)
>>> movers.at_work("/in", since=20.0), movers.at_work("/in", since=21.0), movers.at_work("/", since=0.0)
('lfs.1500', '', '')
"""

from __future__ import annotations

from collections import deque

MOVES = 3
"""So many files that get another layout within a time are the work of a mover."""


class OtherMovers:
    """The last such files of each directory."""

    def __init__(self, most: int) -> None:
        """``most`` directories are remembered."""
        self._most = most
        self._moves: dict[str, deque[tuple[float, str]]] = {}

    def moved(self, directory: str, job: str, time: float) -> None:
        """A file of the directory was given another layout by somebody else."""
        if len(self._moves) > self._most:
            self._moves.clear()
        self._moves.setdefault(directory, deque(maxlen=MOVES)).append((time, job))

    def at_work(self, directory: str, since: float) -> str:
        """Job that has moved several files of a directory since then; "" for none.

        One file is somebody with a setstripe; several are another mover at work.
        """
        moves = self._moves.get(directory)
        return moves[-1][1] if moves and len(moves) == MOVES and moves[0][0] >= since else ""
