"""Groups the tasks of an array, which have a job id each, so that they are seen as the one neighbour they are.

Fifty equal tasks each do too little to slow anybody. What they do together counts.

* The batch system's id names the array: Slurm ``1234_7``, PBS ``1234[7].server``, LSF ``1234[7]``. These tasks are a
  group wherever they work.
* Other ids have no such name: ``SLURM_JOB_ID`` is a number of its own for each task, ``task07.1001`` (``%e.%u``) the
  name of a script and a user. Such jobs are a group if their ids differ by numbers only, their users are the same where
  the id shows them, and they work in the same directory, or in directories that differ by numbers only. While the
  directory of a job is not known, it is in no group.

>>> groups(["1234_7", "1234_8", "77_1", "ior.1002"], {})
{'1234_[]': ('1234_7', '1234_8')}
>>> groups(["4242", "4243", "4244"], {"4242": "/proj/run/t1", "4243": "/proj/run/t2", "4244": "/home/u"})
{'[]@/proj/run/t[]': ('4242', '4243')}
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

_SLURM_TASK = re.compile(r"(?<![\w\[])(\d+)_\d+(?!\w)")
_BRACKET_TASK = re.compile(r"(?<![\w\[])(\d+)\[\d+\]")
_NUMBER = re.compile(r"\d+")
_USER = re.compile(r"(.+)\.(\d+)", re.DOTALL)
"""``%e.%u``, ``%j.%u``: anything, a dot, and a user."""


@lru_cache(maxsize=1 << 14)
def array_of(job_id: str) -> str:
    """Name of the array that a job id names, as batch systems write an array without its index; empty if there is none.

    Further parts of the id, such as the server of PBS or a user, stay.

    >>> [array_of(each) for each in ("1234_7", "1234[7].pbs01", "1234_7.1001", "1234", "run_7.1001", "x1234_7")]
    ['1234_[]', '1234[].pbs01', '1234_[].1001', '', '', '']
    """
    name, found = _SLURM_TASK.subn(r"\1_[]", job_id, count=1)
    if not found:
        name, found = _BRACKET_TASK.subn(r"\1[]", job_id, count=1)
    return name if found else ""


@lru_cache(maxsize=1 << 14)
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
    return f"{form}@{_unnumbered(directory)}" if directory and form != job_id else ""


def groups(jobs: Iterable[str], directories: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """By name of the group, its jobs in order of their ids; at least two. A job is in one group at most.

    ``directories`` has the directory in which each job works most, as far as it is known.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for job in jobs:
        name = group_of(job, directories.get(job, ""))
        if name:
            found[name].add(job)
    return {name: tuple(sorted(members)) for name, members in sorted(found.items()) if len(members) > 1}


def _unnumbered(text: str) -> str:
    return _NUMBER.sub("[]", text)
