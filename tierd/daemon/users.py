"""Names of the users that job ids name by number.

With ``jobid_var=procname_uid``, the default of most sites, a job id is the program and the number of the user:
``ior.1002``. The name comes from the node's own user database, which may be a directory service that does not answer:
one background thread asks, and nobody waits for it.
"""

from __future__ import annotations

import pwd
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor

from lustre.background import DaemonExecutor

_UID = re.compile(r"[^.].*\.(0|[1-9]\d{0,9})")
MAX_USERS = 4096


def user_id(job: str) -> int | None:
    """Number of the user in a job id of the form ``PROGRAM.UID``; None for another form.

    >>> user_id("ior_stream.1002"), user_id("4711"), user_id("v1.02"), user_id("a.b.7")
    (1002, None, None, 7)
    """
    found = _UID.fullmatch(job)
    return int(found[1]) if found else None


def name_of(uid: int) -> str:
    """Name of a user on this node; empty if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return ""


class UserNames:
    """Remembers names of users. :meth:`names` never waits: a name that is not known yet is known later."""

    def __init__(self, lookup: Callable[[int], str] = name_of, executor: Executor | None = None) -> None:
        self._lookup = lookup
        self._executor = executor or DaemonExecutor("tierd-users", 1)
        self._known: dict[int, str] = {}

    def names(self, jobs: Iterable[str]) -> Mapping[str, str]:
        """User of each job whose job id names one: ``alice (1002)``, or ``1002`` while the name is unknown."""
        found: dict[str, str] = {}
        for job in jobs:
            uid = user_id(job)
            if uid is None:
                continue
            name = self._known.get(uid)
            if name is None and len(self._known) < MAX_USERS:
                self._known[uid] = ""
                self._executor.submit(self._learn, uid)
            found[job] = f"{name} ({uid})" if name else str(uid)
        return found

    def _learn(self, uid: int) -> None:
        self._known[uid] = self._lookup(uid)
