"""The token bucket filter (TBF) of an OSS by job id: rules, and a bucket for each job on each CPU partition (CPT).

Rules are written and read as ``ost.OSS.ost_io.nrs_tbf_rule``, policies as ``nrs_policies``, with the kernel's errors
(``lustre/ptlrpc/nrs_tbf.c``). Only regular requests are modelled.
"""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from simulator.engine import Completion, Engine

DEFAULT_RATE = 10_000
"""Requests per second of the rule ``default``: ``tbf_rate``."""
DEPTH = 3.0
"""Tokens that a bucket holds: ``tbf_depth``."""
MAX_NAME = 15
KINDS = {"tbf jobid", "tbf"}
"""Modelled policies; the second one has generic rules. The kernel prints what was written."""
_START = re.compile(r"start (\S+) jobid=\{(.*)\} rate=(\d+)(?: rank=(\w+))?")
_CHANGE = re.compile(r"change (\S+) rate=(\d+)")
_STOP = re.compile(r"stop (\S+)")


@dataclass(slots=True)
class Rule:
    """A rule, as the OSS tries them in turn."""

    name: str
    jobs: tuple[str, ...]
    """Empty for the rule ``default``, which fits all jobs."""
    rate: float

    @property
    def condition(self) -> str:
        return f"jobid={{{' '.join(self.jobs)}}}" if self.jobs else "*"


class Bucket:
    """Requests of one job on one CPT, in their order."""

    def __init__(self, engine: Engine) -> None:
        self.rate = float(DEFAULT_RATE)
        self._engine, self._tokens, self._at = engine, DEPTH, engine.now
        self._waiting: deque[Completion] = deque()
        self._alarm = 0

    def turn(self) -> Completion:
        """Completes when the request may be served."""
        turn = Completion()
        self._waiting.append(turn)
        self.serve()
        return turn

    def serve(self, alarm: int | None = None) -> None:
        """Serve what there are tokens for. An alarm that was set before another one does nothing."""
        if alarm not in {None, self._alarm}:
            return
        now = self._engine.now
        self._tokens, self._at = min(self._tokens + (now - self._at) * self.rate, DEPTH), now
        while self._waiting and self._tokens > 1 - 1e-9:
            self._tokens -= 1
            self._waiting.popleft().succeed()
        if self._waiting:
            self._alarm += 1
            self._engine.after((1 - self._tokens) / self.rate, self.serve, self._alarm)


class Tbf:
    """The filter of one OSS. Without a policy ``tbf``, nothing waits."""

    def __init__(self, engine: Engine, partitions: int = 1) -> None:
        self.policy = ""
        """``tbf jobid``, ``tbf``, or empty for ``fifo``."""
        self.partitions = partitions
        self._was_set = False
        self._engine = engine
        self.rules: list[Rule] = []
        self._buckets: dict[tuple[str, int], Bucket] = {}

    def set_parameter(self, name: str, value: str) -> None:
        """Write ``nrs_policies`` or ``nrs_tbf_rule``. Raises OSError as the kernel does."""
        if name == "nrs_policies":
            self.policy, self._was_set = value if value in KINDS else "", True
            self.rules = [Rule("default", (), DEFAULT_RATE)] if self.policy else []
        else:
            self._command(value.removeprefix("reg ").strip())
        for (job, _), bucket in self._buckets.items():
            bucket.serve()  # at the former rate up to now
            bucket.rate = self._rate(job)
            bucket.serve()

    def _command(self, text: str) -> None:
        if not self.policy:
            raise _failed(errno.ENODEV)
        if start := _START.fullmatch(text):
            self._start(start[1], tuple(start[2].split()), int(start[3]), before=start[4])
        elif change := _CHANGE.fullmatch(text):
            self.rules[self._place(change[1])].rate = int(change[2])
        elif stop := _STOP.fullmatch(text):
            self.rules = [rule for rule in self.rules if rule.name != stop[1] or rule.name == "default"]
        else:
            raise _failed(errno.EINVAL)

    def _start(self, name: str, jobs: tuple[str, ...], rate: int, before: str | None) -> None:
        if len(name) > MAX_NAME:
            raise _failed(errno.ENAMETOOLONG)
        if not re.fullmatch(r"\w+", name, re.ASCII) or not jobs or not 0 < rate < 1_000_000:
            raise _failed(errno.EINVAL)
        if any(rule.name == name for rule in self.rules):
            raise _failed(errno.EEXIST)
        self.rules.insert(self._place(before) if before else 0, Rule(name, jobs, rate))

    def _place(self, name: str) -> int:
        for number, rule in enumerate(self.rules):
            if rule.name == name:
                return number
        raise _failed(errno.ENOENT)

    def _rule(self, job: str) -> Rule | None:
        return next((rule for rule in self.rules if not rule.jobs or job in rule.jobs), None)

    def _rate(self, job: str) -> float:
        rule = self._rule(job)
        return rule.rate if rule else DEFAULT_RATE

    def limit(self, job: str, senders: int) -> float:
        """Requests per second that the OSS serves for a job with this many senders; infinite without a rule."""
        rule = self._rule(job)
        return rule.rate * min(self.partitions, senders) if rule and rule.jobs else float("inf")

    def turn(self, job: str, sender: str) -> Completion | None:
        """Completes when a request may be served; None if it need not wait. The sender decides the CPT."""
        if not self.policy:
            return None
        partition = crc32(sender.encode()) % self.partitions
        bucket = self._buckets.get((job, partition))
        if bucket is None:
            bucket = self._buckets[job, partition] = Bucket(self._engine)
            bucket.rate = self._rate(job)
        return bucket.turn()

    def files(self) -> Iterator[tuple[str, str]]:
        """Both parameters by their names, once a policy was set. Without one the kernel has no rules: ENODEV."""
        if not self._was_set:
            return
        name, state = self.policy or "tbf", "started" if self.policy else "stopped"
        text = "".join(f"\n{which}_requests:\n" + _policy("fifo", "started", "yes") + "\n" + _policy(name, state, "no")
                       for which in ("regular", "high_priority"))
        yield "nrs_policies", text + "\n"
        parts = map(self._partition, range(self.partitions)) if self.policy else ()
        yield "nrs_tbf_rule", "regular_requests:\n" + "".join(parts)

    def _partition(self, number: int) -> str:
        used = [self._rule(job) for job, partition in self._buckets if partition == number]
        lines = (f"{rule.name} {rule.condition} {rule.rate:.0f}, ref {sum(each is rule for each in used)}\n"
                 for rule in self.rules)
        return f"CPT {number}:\n{''.join(lines)}"


def _policy(name: str, state: str, fallback: str) -> str:
    return (f"  - name: {name}\n    state: {state}\n    fallback: {fallback}\n    queued: {0:<20}\n"
            f"    active: {0:<20}\n")


def _failed(number: int) -> OSError:
    return OSError(number, os.strerror(number))
