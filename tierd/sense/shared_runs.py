"""Runs on shared files that have ended, learnt by directory and user: the next run may have another job id.

The journal keeps them, so that runs before a restart of tierd count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from lustre.filesystem import Filesystem
from tierd.model import SharedFile, SharedRuns
from tierd.sense.changelogs.counts import SharedRun

MAX_SHARED_RUNS = 20
"""Users and directories whose runs are remembered, those of the newest runs. Each takes two requests to an MDT each
half minute."""
Known = dict[tuple[str, int], SharedRuns]
"""By directory and user."""
Store = Callable[[str], object]
"""Keeps what :func:`to_json` makes."""


class LearntRuns:
    """What is known about runs on shared files."""

    def __init__(self, filesystem: Filesystem, stored: str, store: Store) -> None:
        """``stored`` is what ``store`` kept before; "" for nothing."""
        self._filesystem = filesystem
        self._known = from_json(stored)
        self._store = store

    def learn(self, runs: Iterable[SharedRun]) -> tuple[SharedRuns, ...]:
        """All runs, the newest last, after these have ended; with the present layouts of their files."""
        known = dict(self._known)
        for run in runs:
            with suppress(OSError):  # removed
                key = run.path.rpartition("/")[0], self._filesystem.status(run.path).uid
                before = known.pop(key, None)
                if before is not None and run.ended_at <= before.ended_at:
                    known[key] = before  # a record that is read again after a restart
                    continue
                openers = min(run.openers, before.file.openers) if before else run.openers
                known[key] = SharedRuns(SharedFile(run.job, run.path, openers), 1 + (before.runs if before else 0),
                                        run.ended_at - run.began_at + (before.seconds if before else 0.0),
                                        run.ended_at)
        known = dict(list(known.items())[-MAX_SHARED_RUNS:])
        if known != self._known:
            self._known = known
            self._store(to_json(known))
        return tuple(map(self._as_it_is, known.values()))

    def _as_it_is(self, runs: SharedRuns) -> SharedRuns:
        try:
            size, layout = self._filesystem.status(runs.file.path).size_bytes, self._filesystem.layout(runs.file.path)
        except OSError:
            return replace(runs, runs=0)  # its layout is unknown
        return replace(runs, file=replace(runs.file, layout=layout, size_bytes=size))


def to_json(known: Known) -> str:
    """The runs, for the journal.

    >>> runs = {("/d", 5): SharedRuns(SharedFile("mpi.7", "/d/out", 16), 2, 80.0, 9.5)}
    >>> from_json(to_json(runs)) == runs, from_json("{}"), from_json('[["/d", 5, "mpi.7", "/d/out", "many", 2, 80, 9]]')
    (True, {}, {})
    """
    return json.dumps([[directory, user, runs.file.job, runs.file.path, runs.file.openers, runs.runs, runs.seconds,
                        runs.ended_at]
                       for (directory, user), runs in known.items()])


def from_json(text: str) -> Known:
    """The runs as they were stored; none if any of them makes no sense."""
    with suppress(ValueError, TypeError, OverflowError):
        return {(str(directory), int(user)): SharedRuns(SharedFile(str(job), str(path), int(openers)), int(runs),
                                                        float(seconds), float(ended_at))
                for directory, user, job, path, openers, runs, seconds, ended_at in json.loads(text)}
    return {}
