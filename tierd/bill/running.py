"""The bill while tierd runs: accounts of the cases that hold, entries in the journal, metrics and answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import exp, hypot

from prometheus_client.core import CounterMetricFamily, Metric

from tierd.bill.account import Account, BilledWindow
from tierd.bill.entries import BillAnswer, BillEntry, answer, day_of, remove_old, store, stored
from tierd.daemon.loop import Daemon
from tierd.daemon.users import WhoseJobs
from tierd.detect.gain import StreamTrack
from tierd.detect.interference import VARIES
from tierd.model import Finding

STORE_SECONDS = 60.0
"""Time between two writes of the entries of cases that hold: a kill loses as much of the bill."""
MAX_LATE_SECONDS = 60.0
"""A finding bills the time since the aggressor came, up to this. A choice: longer ago, it cost less than is found."""
MAX_SERIES = 200
"""Pairs of jobs with a series of their own. The losses of further pairs are in one series without names."""
Pair = tuple[str, str]


@dataclass(slots=True)
class Case:
    """A finding that holds, on one day."""

    number: int
    begun_at: float
    ended_at: float
    account: Account = field(default_factory=Account)


class Bill:
    """One step after each cycle keeps the accounts. Answers and metrics are safe in any thread."""

    def __init__(self, daemon: Daemon, whose: WhoseJobs) -> None:
        self._daemon, self._whose, self._clock = daemon, whose, daemon.parts.node.clock
        self._journal = daemon.parts.journal
        self._lock = threading.Lock()
        self._cases: dict[tuple[str, str, str], Case] = {}
        self._billed: dict[Pair, float] = {}
        """Bytes of ended cases since the start."""
        self._shown: dict[Pair, float] = {}
        """Values of the series. A counter never decreases, even if an interval becomes wider."""
        self._stored_at = 0.0
        self.requests = {"bill": self._answer}

    def step(self) -> None:
        daemon, now = self._daemon, self._clock.now()
        holding = {finding.key: finding for finding in daemon.findings if finding.evidence.of_stream is not None}
        tracks = daemon.detection.tracks
        with self._lock:
            for finding in holding.values():
                if (number := daemon.log.known_number(finding)) and finding.victim in tracks:
                    self._add(number, finding, tracks[finding.victim])
            ended = [key for key, case in self._cases.items()
                     if key not in holding or day_of(case.begun_at) != day_of(now)]
            if ended or now >= self._stored_at + STORE_SECONDS:
                self._store(now)
            for key in ended:
                pair = key[1], key[2]
                self._billed[pair] = self._billed.get(pair, 0.0) + billed_bytes(self._cases.pop(key))

    def _add(self, number: int, finding: Finding, track: StreamTrack) -> None:
        """Add the windows since the last step."""
        if finding.aggressor not in track.jobs:  # another stream, or a job that lost its place in the model
            return
        column = 1 + track.jobs.index(finding.aggressor)
        case = self._cases.get(finding.key)
        if case is None:
            seconds = self._daemon.windows[-1].seconds
            came_at = finding.evidence.of_stream.aggressor_came_at if finding.evidence.of_stream else 0.0
            newest = track.windows[-1].end
            since = newest - seconds
            if newest - MAX_LATE_SECONDS <= came_at < since:
                since = came_at
            case = self._cases[finding.key] = Case(number, since, since)
        account = case.account
        account.cost = float(track.mean[column])
        account.error = hypot(float(max(track.covariance[column, column], 0.0))**0.5, VARIES * account.cost)
        cost = dict(zip(track.jobs, track.mean[1:].tolist(), strict=False))
        for window in track.windows:
            if window.end > case.ended_at:
                seconds = window.end - case.ended_at
                taken = dict(window.taken)
                dose = taken.pop(finding.aggressor, 0.0)
                others = sum(cost.get(job, 0.0) * each for job, each in taken.items())
                account.add(BilledWindow(exp(window.log_rate) * seconds, seconds, dose, others))
                case.ended_at = window.end

    def _entries(self) -> list[BillEntry]:
        jobs = {job for _, *pair in self._cases for job in pair}
        whose = self._whose(jobs)
        found = []
        for (_, aggressor, victim), case in self._cases.items():
            lost = case.account.lost()
            (by_user, by_project), (user, project) = (whose.get(job, ("", "")) for job in (aggressor, victim))
            found.append(BillEntry(
                finding=case.number, begun_at=case.begun_at, ended_at=case.ended_at, aggressor=aggressor, victim=victim,
                lost_bytes=lost.bytes, low_bytes=lost.low_bytes, high_bytes=lost.high_bytes, lost_seconds=lost.seconds,
                aggressor_user=by_user, aggressor_project=by_project, victim_user=user, victim_project=project))
        return found

    def _store(self, now: float) -> None:
        self._stored_at = now
        store(self._journal, self._entries())
        remove_old(self._journal, now)

    def _answer(self, request: Mapping[str, object]) -> BillAnswer:
        """The bill from ``since`` to ``until`` (epoch seconds), of all jobs or of one ``job``."""
        now = self._clock.now()
        until = float(str(request.get("until") or now))
        since = float(str(request.get("since") or until - 86400))
        with self._lock:
            entries = {(each.finding, each.begun_at): each for each in stored(self._journal, since, until)}
            entries |= {(each.finding, each.begun_at): each for each in self._entries()
                        if each.begun_at <= until and each.ended_at >= since}
        return answer(list(entries.values()), since, until, str(request.get("job") or ""))

    def metrics(self) -> Iterator[Metric]:
        with self._lock:
            present = dict(self._billed)
            for (_, aggressor, victim), case in self._cases.items():
                present[aggressor, victim] = present.get((aggressor, victim), 0.0) + billed_bytes(case)
            for pair, size in present.items():
                if size > 0:
                    series = pair if pair in self._shown or len(self._shown) < MAX_SERIES else ("", "")
                    self._shown[series] = max(self._shown.get(series, 0.0), size)
            shown = dict(self._shown)
        family = CounterMetricFamily(
            "tierd_interference_lost_bytes", "Bytes that the victim would have moved beside what it did, without the"
            f" aggressor, since the start of tierd. Certain losses only; pairs beyond {MAX_SERIES} have empty labels.",
            labels=("victim", "aggressor"))
        for (aggressor, victim), size in shown.items():
            family.add_metric((victim, aggressor), size)
        yield family

    def close(self) -> None:
        with self._lock:
            self._store(self._clock.now())


def billed_bytes(case: Case) -> float:
    lost = case.account.lost()
    return lost.bytes if lost.is_certain else 0.0


def start(daemon: Daemon, whose: WhoseJobs) -> Bill:
    return Bill(daemon, whose)
