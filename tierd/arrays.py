"""Groups the tasks of an array, each with its own job id, so that detection sees them as one neighbour.

Each of fifty equal tasks does too little to slow another job. Their sum counts.

* The batch system's id names the array: Slurm ``1234_7``, PBS ``1234[7].server``, LSF ``1234[7]``. Tasks of
  one array are a group in any directory.
* Other ids name no array: ``SLURM_JOB_ID`` is a separate number for each task, ``task07.1001`` (``%e.%u``) is the name
  of a script and a user. Such jobs are a group if their ids differ only in numbers and they work in the same directory.
  If the id has the user, directories whose last names differ only in numbers count as the same, such as
  ``/proj/run/t1`` and ``/proj/run/t2``. Without the user, these may belong to different users.

>>> group_of("1234_7"), group_of("ior.1002"), group_of("4242", "/proj/run2"), group_of("t1.1001", "/proj/run/d1")
('1234_[]', '', '[]@/proj/run2', 't[].1001@/proj/run/d[]')
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tierd.detect.interference import SUSPECTS
from tierd.detect.profile import Classes
from tierd.loads import OTHER_OPERATIONS, READS, Loads, NamespaceLoads, together
from tierd.model import NamespaceLoad, Window
from tierd.text import printable

MOST_JOBS = 1 << 16
"""Job ids whose forms are remembered. With fewer than are at work, each would be forgotten before it is asked again."""
_SLURM_TASK = re.compile(r"(?<![\w\[])(\d+)_\d+(?!\w)")
_BRACKET_TASK = re.compile(r"(?<![\w\[])(\d+)\[\d+\]")
_NUMBER = re.compile(r"\d+")
_USER = re.compile(r"(.+)\.(\d+)", re.DOTALL)
"""``%e.%u``, ``%j.%u``: anything, a dot, and a user."""


@lru_cache(maxsize=MOST_JOBS)
def array_of(job_id: str) -> str:
    """Return the name of the array of a job, as batch systems write it without a task index; "" for other jobs.

    Further parts of the id, such as the server of PBS or a user, stay.

    >>> [array_of(each) for each in ("1234_7", "1234[7].pbs01", "1234_7.1001", "1234", "run_7.1001", "x1234_7")]
    ['1234_[]', '1234[].pbs01', '1234_[].1001', '', '', '']
    """
    name, found = _SLURM_TASK.subn(r"\1_[]", job_id, count=1)
    if not found:
        name, found = _BRACKET_TASK.subn(r"\1[]", job_id, count=1)
    return name if found else ""


@lru_cache(maxsize=MOST_JOBS)
def form_of(job_id: str) -> str:
    """Job id without its numbers, except for a user at its end.

    >>> [form_of(each) for each in ("4242", "task07.1001", "4242.1001", "untar.1001", "4242:1001")]
    ['[]', 'task[].1001', '[].1001', 'untar.1001', '[]:[]']
    """
    with_user = _USER.fullmatch(job_id)
    return f"{_unnumbered(with_user[1])}.{with_user[2]}" if with_user else _unnumbered(job_id)


def group_of(job_id: str, directory: str = "") -> str:
    """Name of the group that a job could belong to; empty while that is not known.

    ``directory`` is the one in which the job works most.
    """
    array = array_of(job_id)
    if array:
        return array
    form = form_of(job_id)
    if not directory or form == job_id:
        return ""
    if _USER.fullmatch(job_id):
        parent, _, name = directory.rpartition("/")
        directory = f"{parent}/{_unnumbered(name)}" if parent else directory
    return f"{form}@{printable(directory)}"


def any_at_work(name: str, tasks: Collection[str], jobs: Collection[str]) -> bool:
    """Whether a job, or a task of an array of this name, is among the jobs. Tasks that began later count if their
    ids name the array.
    """
    return (name in jobs or any(task in jobs for task in tasks)
            or (bool(tasks) and any(array_of(job) == name for job in jobs)))


FEW_TASKS = SUSPECTS
"""Arrays with up to this many tasks stay single jobs: the model has a slot for each."""
RECENT_SECONDS = 30.0
"""A task that was idle for longer is not counted for :data:`FEW_TASKS`."""


class ArrayTracker:
    """The large arrays at work, window by window.

    An array that was large stays a group until fewer than two of its tasks are at work, so its name does not come and
    go with the number of tasks.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, float]] = {}
        """Group of each task, by its directory when that was first known; and when it was last at work, in epoch
        seconds."""
        self._large: set[str] = set()

    def update(self, jobs: Collection[str], now: float, oldest: float,
               directory_of: Callable[[str], str]) -> Mapping[str, tuple[str, ...]]:
        """Tasks of each large array since ``oldest``, as of a window that ends now and has these jobs.

        ``directory_of`` gives the directory in which a job works most, or "". It is asked for jobs whose ids have the
        same form, if there are many.
        """
        alike = Counter(form_of(job) for job in jobs if not array_of(job))
        for job in jobs:
            asks = job not in self._seen and not array_of(job) and alike[form_of(job)] > FEW_TASKS
            name = self._seen[job][0] if job in self._seen else group_of(job, directory_of(job) if asks else "")
            if name:
                self._seen[job] = name, now
        self._seen = {job: seen for job, seen in self._seen.items() if seen[1] > oldest}
        tasks: defaultdict[str, list[str]] = defaultdict(list)
        at_work = Counter[str]()
        for job, (name, time) in self._seen.items():
            tasks[name].append(job)
            at_work[name] += time > now - RECENT_SECONDS
        self._large = {name for name, count in at_work.items()
                       if count > FEW_TASKS or (count >= 2 and name in self._large)}
        return {name: tuple(sorted(tasks[name])) for name in sorted(self._large)}


def with_arrays(window: Window, arrays: Mapping[str, Collection[str]], classes: Classes) -> Window:
    """The window with each array of small files or small I/O as one job, under the name of the array.

    ``arrays`` are the tasks of each. Tasks that stream stay jobs of their own: each may be the victim of another
    neighbour. If the array as a whole does neither small files nor small I/O, all its tasks stay jobs of their own.
    """
    name_of = {task: name for name, tasks in arrays.items() for task in tasks}
    if not name_of:
        return window
    loads, namespace = Loads.of(window.loads), dict(window.namespace)
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(loads.jobs_among(name_of)).tolist():
        rows[loads.job[row]].append(row)
    joined = np.zeros(len(loads), bool)
    job_of = loads.job.copy()
    for name in dict.fromkeys(name_of[task] for task in rows):
        small = {task for task in arrays[name] if (task in rows or task in namespace)
                 and not _streams(loads.rows(rows.get(task, [])), namespace.get(task), classes)}
        here = [row for task in small for row in rows.get(task, ())]
        names = _together(name, [namespace[task] for task in arrays[name] if task in small and task in namespace])
        if not here or _streams(loads.rows(here), names, classes):
            continue
        joined[here], job_of[here] = True, name
        namespace = {job: load for job, load in namespace.items() if job not in small}
        if names is not None:
            namespace[name] = names
    tasks = loads.rows(joined)
    return replace(window, loads=together([loads.rows(~joined), Loads(
        tasks.target, job_of[joined], tasks.numbers, tasks.sizes)]), namespace=namespace)


def _streams(loads: Loads, names: NamespaceLoad | None, classes: Classes) -> bool:
    """Whether these loads of a window are those of a stream: full RPCs, and more bytes than small files have."""
    moved = float(loads.moved_bytes.sum())
    files = max(names.closes, names.creates) if names is not None else 0.0
    return (moved > classes.small_file_bytes * max(files, 1.0)
            and moved >= classes.stream_rpc_bytes * float(loads.numbers[:, READS:OTHER_OPERATIONS].sum()))


def _together(name: str, parts: Sequence[NamespaceLoad]) -> NamespaceLoad | None:
    if not parts:
        return None
    return NamespaceLoad(name, *NamespaceLoads.of({part.job: part for part in parts}).numbers.sum(axis=0).tolist())


def _unnumbered(text: str) -> str:
    return _NUMBER.sub("[]", text)
