"""The bill while tierd runs: accounts of the cases that hold, entries in the journal, metrics and answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from tierd.bill.entries import BillAnswer, BillEntry, answer, day_of, ids_of, remove_old, store, stored
from tierd.daemon.loop import Daemon
from tierd.daemon.users import WhoseJobs
from tierd.detect.account import Case, Key, bill_windows
from tierd.extensions import Extension

STORE_SECONDS = 60.0
"""Time between two writes of the entries of cases that hold: a kill loses at most this time of the bill."""
MAX_SERIES, MAX_ENDED = 200, 100
"""Pairs of jobs with a series of their own. At most ``MAX_ENDED`` of them, the latest, have no open case. The losses of
further pairs are in one series without names."""
Pair = tuple[str, str]


class Bill(Extension):
    """One step after each cycle keeps the accounts. Answers and metrics are safe in any thread."""

    def __init__(self, daemon: Daemon, whose: WhoseJobs) -> None:
        self._daemon, self._whose, self._clock = daemon, whose, daemon.parts.node.clock
        self._journal = daemon.parts.journal
        self._lock = threading.Lock()
        self._cases: dict[Key, Case] = {}
        self._billed: dict[Pair, float] = {}
        """Bytes of ended cases since the start, by series."""
        self._shown: dict[Pair, float] = {}
        """Values of the series; below 0 before they are first shown. A counter never decreases, even if an interval
        becomes wider."""
        self._stored_at = 0.0
        self.requests = {"bill": self._answer}

    def step(self) -> None:
        daemon, now = self._daemon, self._clock.now()
        holding = {finding.key: finding for finding in daemon.findings if finding.evidence.of_stream is not None}
        tracks = daemon.engine.tracks.known
        with self._lock:
            for finding in holding.values():
                if (number := daemon.log.known_number(finding)) and finding.victim in tracks:
                    bill_windows(self._cases, number, finding, tracks[finding.victim])
            ended = [key for key, case in self._cases.items()
                     if key not in holding or day_of(case.begun_at) != day_of(case.ended_at)]
            if ended or not 0 <= now - self._stored_at < STORE_SECONDS:
                self._store(now)
            for key in ended:
                case = self._cases.pop(key)
                self._add(self._billed, key[1:], billed_bytes(case))
                if key in holding:  # the next day begins where this one ends
                    self._cases[key] = Case(case.number, case.ended_at, case.ended_at, is_noticed=case.is_noticed)
            live = {key[1:] for key in self._cases}
            if live <= self._shown.keys():  # else a pair would change its series
                for pair in [pair for pair in self._billed if pair not in live and any(pair)][:-MAX_ENDED]:
                    del self._billed[pair], self._shown[pair]

    def _add(self, sums: dict[Pair, float], pair: Pair, size: float) -> None:
        """Add bytes to the series of a pair. The first pairs have one of their own."""
        series = pair if pair in self._shown or len(self._shown) < MAX_SERIES else ("", "")
        self._shown.setdefault(series, -1.0)
        sums[series] = sums.pop(series, 0.0) + size  # put in again: the pairs that lost last are at the end

    def _entries(self) -> list[BillEntry]:
        whose = self._whose({job for _, *pair in self._cases for job in pair})
        found = []
        for (_, aggressor, victim), case in self._cases.items():
            if case.ended_at == case.begun_at:
                continue
            lost = case.billed()
            (by_user, by_project), (user, project) = (whose.get(job, ("", "")) for job in (aggressor, victim))
            found.append(BillEntry(
                finding=case.number, begun_at=case.begun_at, ended_at=case.ended_at, aggressor=aggressor, victim=victim,
                lost_bytes=lost.bytes, low_bytes=lost.low_bytes, high_bytes=lost.high_bytes, lost_seconds=lost.seconds,
                aggressor_user=by_user, aggressor_project=by_project, victim_user=user, victim_project=project))
        return found

    def _store(self, now: float) -> None:
        if day_of(now) == day_of(self._stored_at) + 1:  # a clock that jumped ahead may be set right
            remove_old(self._journal, now)
        self._stored_at = now
        store(self._journal, self._entries())

    def _answer(self, request: Mapping[str, object]) -> BillAnswer:
        """The bill from ``since`` to ``until`` (epoch seconds), of all jobs or of one ``job``.

        Raises ValueError for times that are not numbers.
        """
        until = float(str(request.get("until") or self._clock.now()))
        since = float(str(request.get("since") or until - 86400))
        with self._lock:
            entries = {(each.finding, each.begun_at): each for each in stored(self._journal, since, until)}
            entries |= {(each.finding, each.begun_at): each for each in self._entries()
                        if each.begun_at <= until and each.ended_at >= since}
        return answer(list(entries.values()), since, until, ids_of(
            self._journal, str(request.get("job") or ""), str(request.get("user") or "")))

    def metrics(self) -> Iterator[Metric]:
        with self._lock:
            sums = dict(self._billed)
            for key, case in self._cases.items():
                self._add(sums, key[1:], billed_bytes(case))
            self._shown |= {series: max(self._shown[series], size if self._shown[series] >= 0 else 0.0)
                            for series, size in sums.items()}  # from 0 on: Prometheus sees the first bytes increase
            shown = dict(self._shown)
        family = CounterMetricFamily(
            "tierd_interference_lost_bytes", "Additional bytes that the victim would have moved without the aggressor, "
            "since tierd started. Only certain losses count; many pairs share a series with empty labels.",
            labels=("victim", "aggressor"))
        for (aggressor, victim), size in shown.items():
            family.add_metric((victim, aggressor), size)
        yield family

    def close(self) -> None:
        with self._lock:
            self._store(self._clock.now())


def billed_bytes(case: Case) -> float:
    lost = case.billed()
    return lost.bytes if lost.is_certain else 0.0


start = Bill
