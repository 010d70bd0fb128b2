r"""Names, users, accounts and partitions of Slurm's jobs, from ``squeue --json``, ``sacct --json`` or slurmrestd.

Slurm 21.08 to 22.05 write plain numbers (plugins ``openapi/v0.0.37`` and ``v0.0.38``). Since 23.02 (plugins
``data_parser``), a number may be an object that says whether it is set. Unknown fields are skipped.

>>> new = b'''{"jobs": [{"job_id": 4711, "array_job_id": {"set": true, "infinite": false, "number": 0}, "job_state":
...  ["RUNNING"], "array_task_id": {"set": false, "infinite": false, "number": 0}, "name": "train", "account": "chem",
...  "user_name": "alice", "user_id": 1001, "partition": "gpu", "current_working_directory": "/scratch/alice"}]}'''
>>> [(job.id, job.task, job.uid, job.directory, job.words) for job in parse(new)]
[(4711, '', 1001, '/scratch/alice', 'alice: train, account chem, partition gpu')]
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Literal

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from pydantic import AfterValidator

from tierd.background import DaemonExecutor
from tierd.clock import Clock
from tierd.config.sense import ServerAccess, asks_http
from tierd.integrations.protocol import Integration, SchedulerJob, Site, Source, count_of, plain
from tierd.model import Table
from tierd.sense.http_client import HttpClient, SourceError, one_line, read_secret
from tierd.text import printable
from tierd.validators import Bytes, Seconds

MAX_JOBS = 4096
"""Jobs that tierd remembers. The one that was asked for longest ago is forgotten."""
MAX_IDS = 500
"""Jobs that one ``sacct`` looks up."""
log = logging.getLogger("tierd.integrations")
REFRESH_SECONDS = 60.0
"""Time between two requests to Slurm. A choice: its controller answers all users."""
SOON_SECONDS = 10.0
"""Time between two requests while a job is not known yet."""


@dataclass(frozen=True)
class SlurmSettings(Table):
    """Where names, users, accounts and partitions of jobs come from. Without it, tierd shows job ids only."""

    source: Literal["", "squeue", "sacct", "slurmrestd"] = ""
    """``squeue`` and ``sacct`` run the program of this node with ``--json`` (Slurm 21.08 and newer; ``sacct`` needs
    slurmdbd). ``slurmrestd`` requests ``url``. Empty: Slurm is not used."""
    url: str = ""
    """``https://slurm01:6820/slurm/v0.0.41/jobs``, with the version of an API that this slurmrestd has."""
    user: str = ""
    """User of the token."""
    token_file: str = ""
    """File with a JSON web token (``scontrol token``). It is read for every request."""
    ca_file: str = ""
    """CA certificates (PEM) for the server's certificate; empty: the system's certificates."""
    job_id: str = r"(\d+)(?:_(?:\d+|\[\]))?"
    """Regular expression for a whole job id of Lustre. Its first group is the number of Slurm's job. For
    ``jobid_name=%e.%j``: ``.+\\.(\\d+)``. A task of an array may be ``1234_7``; ``1234_[]`` is tierd's name for all."""
    timeout_seconds: Seconds = 20.0
    max_bytes: Bytes = 64 << 20
    """Maximum length of an answer; a longer one is refused. ``sacct`` gives only the jobs that tierd shows."""


def validated(settings: SlurmSettings) -> SlurmSettings:
    """The settings. Raises ValueError for an invalid URL or expression."""
    if settings.source == "slurmrestd" and not asks_http(settings.url):
        raise ValueError("url: give the whole address: https://slurm01:6820/slurm/v0.0.41/jobs")
    if settings.url and settings.source != "slurmrestd":
        raise ValueError('url: it is used with source = "slurmrestd" only')
    try:
        groups = re.compile(settings.job_id).groups
    except re.error as error:
        raise ValueError(f"job_id: {error}") from None
    if groups < 1:
        raise ValueError(r"job_id: put the number of the job into a group: .+\.(\d+)")
    return settings


def parse(data: bytes) -> list[SchedulerJob]:
    """The jobs of an answer; entries that are not jobs are left out. Raises ValueError.

    Slurm copies names of jobs and directories as they are, so they may hold bytes that are not UTF-8.
    """
    answer = json.loads(data.decode("utf-8", "surrogateescape"))
    jobs = answer.get("jobs") if isinstance(answer, dict) else None
    if not isinstance(jobs, list):
        raise ValueError("an answer without jobs")
    return [job for each in jobs if isinstance(each, dict) and (job := _job(each)) is not None]


def _job(entry: Mapping[str, object]) -> SchedulerJob | None:
    if (number := number_of(entry.get("job_id"))) is None:
        return None
    array = entry.get("array")
    if not isinstance(array, dict):
        array = {"job_id": entry.get("array_job_id"), "task_id": entry.get("array_task_id")}
    of, task = number_of(array.get("job_id")), number_of(array.get("task_id"))
    return SchedulerJob(
        number, _text(entry, "name"), _text(entry, "user_name") or _text(entry, "user"),
        number_of(entry.get("user_id")), _text(entry, "account"), partition=_text(entry, "partition"),
        directory=_path(entry.get("current_working_directory") or entry.get("working_directory")),
        task=f"{of}_{task}" if of and task is not None else "",
        nodes=number_of(entry.get("node_count", entry.get("allocation_nodes"))) or None)


def _text(entry: Mapping[str, object], key: str) -> str:
    return plain(found) if isinstance(found := entry.get(key), str) else ""


def _path(found: object) -> str:
    """A path with its bytes as surrogates (PEP 383). "" for anything that has no bytes."""
    try:
        return os.fsdecode(os.fsencode(found)) if isinstance(found, str) else ""
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return ""


def number_of(value: object) -> int | None:
    """A number as any release writes it; None if it is not set.

    >>> forms = (7, "7", {"set": True, "infinite": False, "number": 7}, {"set": False, "number": 0}, None, True, "x")
    >>> [number_of(each) for each in forms]
    [7, 7, 7, None, None, None, None]
    """
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return count_of(value)


Read = Callable[[Collection[int]], bytes]
"""Returns the answer about these jobs; it may have others too. Raises OSError."""


def reader(settings: SlurmSettings, environment: Mapping[str, str]) -> Read:
    if settings.source == "slurmrestd":
        return lambda _: _from_slurmrestd(settings, environment)
    if settings.source == "squeue":
        return lambda _: run(["squeue", "--json"], settings, environment)
    return lambda ids: run(["sacct", "--json", "--allocations", "--allusers", "--jobs=" + ",".join(map(str, ids))],
                           settings, environment)


def run(command: Sequence[str], settings: SlurmSettings, environment: Mapping[str, str]) -> bytes:
    """What a program prints. Raises SourceError if it fails, takes too long or prints too much."""
    with tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(  # noqa: S603 -- no shell; the words are numbers and options
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, env=environment, process_group=0)
        except OSError as error:
            raise SourceError(f"{command[0]}: {error.strerror or error}") from error
        # with its children: that of a wrapper holds the pipe open
        late = threading.Timer(settings.timeout_seconds, os.killpg, (process.pid, signal.SIGKILL))
        late.daemon = True
        late.start()
        with process:
            assert process.stdout is not None
            data = process.stdout.read(settings.max_bytes + 1)
            too_long = len(data) > settings.max_bytes
            if too_long:
                process.kill()
            code = process.wait()
        timed_out = late.finished.is_set()
        late.cancel()
        err.seek(0)
        said = one_line(err.read(1000).decode("utf-8", "replace"))
    if too_long:
        raise SourceError(f"{command[0]}: more than {settings.max_bytes} bytes (max_bytes)")
    if timed_out and code < 0:
        raise SourceError(f"{command[0]}: no answer within {settings.timeout_seconds:g} s")
    if code:
        raise SourceError(f"{command[0]}: exit status {code}: {said}")
    return data


def _from_slurmrestd(settings: SlurmSettings, environment: Mapping[str, str]) -> bytes:
    """Ask slurmrestd. It reads the token in a header of its own; only later releases take it as a bearer token."""
    token = read_secret(settings.token_file, "", environment, "token")
    headers = {"X-SLURM-USER-TOKEN": token} if token else {}
    if settings.user:
        headers["X-SLURM-USER-NAME"] = settings.user
    client = HttpClient(ServerAccess(ca_file=settings.ca_file, max_bytes=settings.max_bytes), settings.timeout_seconds,
                        environment)
    return client.send("GET", settings.url, ("application/json",), headers=headers).body


MAX_JOB_INFOS = 200
"""Jobs with a series that names user, account and partition."""


class SlurmJobs(Source):
    """Jobs that tierd shows, looked up in the background. No method waits; safe in any thread."""

    def __init__(self, settings: SlurmSettings, read: Read, clock: Clock, executor: Executor | None = None) -> None:
        self._settings = settings
        self._pattern = re.compile(settings.job_id)
        self._read = read
        self._clock = clock
        self._executor = executor or DaemonExecutor("tierd-slurm", 1)
        self._lock = threading.RLock()
        self._known: OrderedDict[str, SchedulerJob | None] = OrderedDict()
        """By job id of Lustre; None while Slurm is not asked, or does not know it."""
        self._asked_at = float("-inf")
        self._has_new = False
        """Whether a new id appeared since the last request."""
        self._busy = False
        self.problem = ""
        """Why the last answer could not be used; empty if it was."""

    def jobs(self, names: Iterable[str]) -> dict[str, SchedulerJob]:
        """What is known about jobs, by their job ids of Lustre. What is not known yet is known later."""
        found: dict[str, SchedulerJob] = {}
        with self._lock:
            for name in names:
                if self._pattern.fullmatch(name) is None:
                    continue
                if name not in self._known:
                    self._known[name] = None
                    self._has_new = True
                    if len(self._known) > MAX_JOBS:
                        self._known.popitem(last=False)
                self._known.move_to_end(name)
                if (job := self._known[name]) is not None:
                    found[name] = job
            self._refresh_if_due()
        return found

    def metrics(self) -> Iterator[Metric]:
        info = InfoMetricFamily("tierd_job", "Always 1. The labels have the name, user, account and partition that "
                                             "Slurm reports for a job, for the jobs that tierd showed last.")
        for jobid, job in sorted(self.last(MAX_JOB_INFOS).items()):
            info.add_metric((), {"jobid": jobid, "name": job.name, "user": job.user, "account": job.account,
                                 "partition": job.partition})
        yield info
        yield GaugeMetricFamily("tierd_slurm_up", "Whether the last answer of Slurm could be used (1) or not (0).",
                                float(not self.problem))

    def last(self, most: int) -> dict[str, SchedulerJob]:
        with self._lock:
            found = [(name, job) for name, job in reversed(self._known.items()) if job is not None]
        return dict(found[:most])

    def _refresh_if_due(self) -> None:
        age = self._clock.now() - self._asked_at
        pause = SOON_SECONDS if self._has_new and not self.problem else REFRESH_SECONDS
        if self._known and not self._busy and not 0 <= age < pause:
            self._busy, self._has_new, self._asked_at = True, False, self._clock.now()
            self._executor.submit(self._refresh, list(self._known))

    def _refresh(self, names: Sequence[str]) -> None:
        problem = ""
        jobs: dict[str, SchedulerJob] = {}
        try:
            last = [int(number) for name in reversed(names) if (number := self._number(name).partition("_")[0])]
            for job in parse(self._read(sorted(set(last[:MAX_IDS])))):
                jobs[str(job.id)] = job
                if job.task:
                    jobs[job.task] = job
                    jobs.setdefault(job.task.partition("_")[0], job)
        except (OSError, ValueError, RecursionError) as error:
            problem = one_line(str(error))
        if problem != self.problem:
            log.warning("%s", f"names of jobs cannot be read: {printable(problem)}" if problem else
                        "Slurm answers again")
        with self._lock:
            self._busy, self.problem = False, problem
            if problem:
                return
            for name in names:
                if name in self._known and (found := jobs.get(self._number(name))) is not None:
                    self._known[name] = found

    def _number(self, name: str) -> str:
        """Slurm's id in a job id of Lustre: ``4711``, ``1234_7`` for a task, ``1234`` for tasks together."""
        found = self._pattern.fullmatch(name)
        if found is None:
            return ""
        whole = re.fullmatch(r"\d+_\d+", name)
        number = name if whole else found[1] or ""  # a part of the expression without the group
        return number if re.fullmatch(r"\d{1,11}(_\d{1,11})?", number) else ""


def start(settings: SlurmSettings, site: Site) -> SlurmJobs:
    return SlurmJobs(settings, reader(settings, site.environment), site.clock)


INTEGRATION = Integration(
    settings=Annotated[SlurmSettings, AfterValidator(validated)], configured=lambda settings: bool(settings.source),
    start=start)
