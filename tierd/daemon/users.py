"""Names of the users that job ids name by number, and what a scheduler reports about jobs.

With ``jobid_var=procname_uid``, the default of most sites, a job id is the program and the number of the user:
``ior.1002``. The account name comes from the node's user database (NSS), which may be a directory service that does not
answer: one background thread asks, and nobody waits for it.
"""

from __future__ import annotations

import pwd
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor

from tierd.background import DaemonExecutor
from tierd.clock import Clock, SystemClock

_UID = re.compile(r"[^.].*\.(0|[1-9]\d{0,9})")
_IN_DIRECTORY = re.compile(r"(.+)@/.*", re.DOTALL)
"""The name of a group of jobs that work in one directory (:mod:`tierd.arrays`)."""
MAX_USERS = 4096
"""Names are remembered for so many users; the one that was looked up longest ago is forgotten."""
RENEW_SECONDS = 3600.0
"""A name is looked up again after this time: accounts are renamed."""
RETRY_SECONDS = 60.0
"""A missing name is looked up again after this time: the directory service may have been down."""


def user_id(job: str) -> int | None:
    """Number of the user in a job id of the form ``PROGRAM.UID``; None for another form.

    >>> user_id("ior_stream.1002"), user_id("4711"), user_id("v1.02"), user_id("a.b.7")
    (1002, None, None, 7)
    >>> user_id("t[].1001@/proj/run")
    1001
    """
    group = _IN_DIRECTORY.fullmatch(job)
    found = _UID.fullmatch(group[1] if group else job)
    return int(found[1]) if found else None


def name_of(uid: int) -> str:
    """Account name of a user on this node; empty if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return ""


WhoseJobs = Callable[[Iterable[str]], Mapping[str, tuple[str, str]]]
"""User and project (account of a scheduler) of jobs, as far as they are known. Never waits."""


class UserNames:
    """Remembers names of users. :meth:`names` never waits: a name that is not known yet is known later.

    Safe in any thread.
    """

    def __init__(self, lookup: Callable[[int], str] = name_of, executor: Executor | None = None,
                 clock: Clock | None = None,
                 scheduler: Callable[[Iterable[str]], Mapping[str, str]] = lambda _: {}) -> None:
        """``scheduler`` returns what is known about jobs in words, such as their names and accounts."""
        self._scheduler = scheduler
        self._lookup = lookup
        self._executor = executor or DaemonExecutor("tierd-users", 1)
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._known: dict[int, tuple[str, float]] = {}
        """Name of each user and when it was looked up; the one of longest ago is the first."""
        self._asked: set[int] = set()
        """Users whose lookup is queued or under way."""

    def names(self, jobs: Iterable[str]) -> Mapping[str, str]:
        """User of each job whose job id names one: ``alice (1002)``, or ``1002`` while the name is unknown.

        A job that the scheduler knows has its name, account and partition too: ``alice: train, account chem, …``.
        """
        every = list(jobs)
        found: dict[str, str] = {}
        with self._lock:
            for job in every:
                uid = user_id(job)
                if uid is not None:
                    name = self._name(uid)
                    found[job] = f"{name} ({uid})" if name else str(uid)
        return {**found, **self._scheduler(every)}

    def _name(self, uid: int) -> str:
        """The remembered name. Looks it up in the background if it is new, old or missing."""
        name, asked_at = self._known.get(uid, ("", float("-inf")))
        fresh = 0 <= self._clock.now() - asked_at < (RENEW_SECONDS if name else RETRY_SECONDS)
        if not fresh and uid not in self._asked and len(self._asked) < MAX_USERS:
            self._asked.add(uid)
            self._executor.submit(self._learn, uid)
        return name

    def _learn(self, uid: int) -> None:
        try:
            name = self._lookup(uid)
        except OSError:
            name = None
        with self._lock:
            before, _ = self._known.pop(uid, ("", 0.0))
            self._known[uid] = (before if name is None else name), self._clock.now()
            self._asked.remove(uid)
            if len(self._known) > MAX_USERS:
                del self._known[next(iter(self._known))]
