"""Many exporters at once: a whole view or none, by one deadline; and whether a reading may be believed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import pytest

from tests.tierd.sense.clocks import SettableClock
from tests.tierd.sense.loopback_server import Behave, answers, head, liar, silent
from tierd.clock import SystemClock
from tierd.config.sense import ServerAccess
from tierd.sense.changelogs.follow import ChangelogError
from tierd.sense.exporters import MAX_THREADS, ExporterReadings, ParallelFetch
from tierd.sense.freshness import FORGET_SECONDS, CheckedReadings, CheckedRecords
from tierd.sense.http_client import HttpClient, SourceError
from tierd.sense.readings import JobCounters, Reading, window


def page(target: str, written: int = 1) -> str:
    return (f'lustre_ost_recovering{{fs="l",target="{target}"}} 0\n'
            f'lustre_job_write_bytes_total{{fs="l",target="{target}",jobid="j"}} {written}\n')


def broken(status: str = "500 No") -> Behave:
    return answers("", status=status)


def scraping(urls: list[str], seconds: float = 5.0) -> ExporterReadings:
    return ExporterReadings(
        lambda: urls, HttpClient(ServerAccess(max_bytes=1 << 20), seconds, {}), SystemClock(), seconds, 30.0
    )


def test_half_a_view_is_none() -> None:
    with liar(answers(page("OST0000"))) as well, liar(broken()) as bad, pytest.raises(SourceError, match="500 No"):
        scraping([well.url, bad.url])()


def test_a_server_whose_targets_its_partner_shows_is_not_missed() -> None:
    one, other = page("OST0000"), page("OST0001")
    with liar([answers(one), broken()]) as failing, liar([answers(other), answers(other + one)]) as partner:
        read = scraping([failing.url, partner.url])
        assert read().targets == {"l-OST0000", "l-OST0001"}
        assert read().targets == {"l-OST0000", "l-OST0001"}
        assert "500 No" in read.missing


def test_a_silent_exporter_costs_one_deadline_and_is_not_queried_again_meanwhile() -> None:
    clock = SystemClock()
    with ExitStack() as servers:
        urls = [servers.enter_context(liar(answers(page(f"OST000{n}")))).url for n in range(3)]
        stuck = servers.enter_context(liar(silent))
        parallel = ParallelFetch(asker(30.0), 0.5)
        begun = clock.now()
        found, problems = parallel([*urls, stuck.url])
        assert clock.now() - begun < 20
        assert set(found) == set(urls)
        assert "no answer within 0.5 s" in str(problems[stuck.url])
        _, problems = parallel([stuck.url])
        assert "the request before this one has not returned yet" in str(problems[stuck.url])
        assert len(stuck.requests) <= 1


def asker(seconds: float) -> Callable[[str], bytes]:
    client = HttpClient(ServerAccess(), seconds, {})
    return lambda url: client.get(url, ("text/plain",), "text/plain").body


def test_a_bug_in_one_answer_does_not_leave_the_others_waiting() -> None:
    def ask(url: str) -> str:
        if url == "bad":
            raise KeyError("oops")
        return url

    found, problems = ParallelFetch(ask, 5.0)(["good", "bad", "good"])
    assert found == {"good": "good"}
    assert "KeyError" in str(problems["bad"])
    assert threading.active_count() < 50


def test_hundreds_of_exporters_are_all_read() -> None:
    urls = [f"http://oss{n}" for n in range(500)]
    found, problems = ParallelFetch(lambda url: threading.current_thread().ident, 60.0)(urls)
    assert (sorted(found), problems) == (sorted(urls), {})


def test_urls_that_find_no_thread_are_reported_and_read_in_the_next_round() -> None:
    go_on, back = threading.Event(), threading.Semaphore(0)

    def ask(url: str) -> str:
        if url.startswith("slow"):
            go_on.wait(60)
            back.release()
        return url

    slow, quick = [f"slow{n}" for n in range(MAX_THREADS)], [f"quick{n}" for n in range(20)]
    threads = threading.active_count()
    parallel = ParallelFetch(ask, 0.05)
    for _ in range(3):
        found, problems = parallel([*slow, *quick])
        assert found == {}
        assert set(problems) == {*slow, *quick}
        assert threading.active_count() <= threads + MAX_THREADS + 1
    assert "other exporters did not answer" in str(problems["quick0"])
    assert "the request before this one has not returned yet" in str(problems["slow0"])
    go_on.set()
    for _ in slow:
        assert back.acquire(timeout=30)
    whole = ParallelFetch(ask, 60.0)
    assert set(whole([*slow, *quick])[0]) == {*slow, *quick}


def test_a_rack_without_power_keeps_nobody_waiting_for_long() -> None:
    before = {*threading.enumerate()}
    rounds = [threading.Event() for _ in range(6)]
    now = 0

    def ask(url: str) -> str:
        if url.startswith("dead"):
            rounds[now].wait(60)
            raise SourceError("timed out")
        return url

    dead, quick = [f"dead{n}" for n in range(2 * MAX_THREADS + 4)], [f"quick{n}" for n in range(20)]
    parallel = ParallelFetch(ask, 0.05)
    found: list[int] = []
    for now in range(len(rounds)):
        answers, problems = parallel([*dead, *quick])
        assert set(problems) == {*dead, *quick} - answers.keys()
        found.append(len(answers))
        rounds[now].set()
        for thread in {*threading.enumerate()} - before:
            thread.join(30)
    assert found == [0, 0, 20, 20, 20, 20]


def test_an_exporter_whose_clock_is_off_is_not_believed() -> None:
    def behave(to: object, _: str) -> None:
        body = page("OST0000").encode()
        to.sendall(head("text/plain", "200 OK", "Date: Thu, 01 Jan 2026 00:00:00 GMT",  # type: ignore[attr-defined]
                        f"Content-Length: {len(body)}") + body)

    with liar(behave) as server, pytest.raises(SourceError, match="its clock differs from this node's by -"):
        scraping([server.url])()


def test_no_exporters_at_all() -> None:
    with pytest.raises(SourceError, match="no exporter is configured"):
        scraping([])()


WELL = Reading(1000.0, {("l-OST0000", "j"): JobCounters({"write": 5.0}, {})}, frozenset({"l-OST0000", "l-OST0001"}))


@dataclass
class Source:
    reading: Reading = WELL

    def __call__(self) -> Reading:
        return self.reading


@pytest.mark.parametrize(("reading", "words"), [
    (replace(WELL, targets=frozenset()), "no target is seen at all"),
    (replace(WELL, time=909.0), "stale: its samples are 91 s old, and must be no older than 90 s"),
    (replace(WELL, time=1031.0), "31 s ahead of this node's clock"),
    (replace(WELL, targets=frozenset({"l-OST0000"})), "l-OST0001 not to be seen"),
    (replace(WELL, time=990.0), "its samples are 10 s older than the samples before"),
])
def test_a_reading_that_may_not_be_believed(reading: Reading, words: str) -> None:
    source, clock = Source(), SettableClock()
    guard = CheckedReadings("exporters", source, clock, 90.0, 30.0)
    assert guard() is WELL
    assert guard.jobs == {"j"}
    source.reading = reading
    with pytest.raises(SourceError, match=words):
        guard()
    assert guard.age.stale(clock.at)
    assert words in guard.age.state(clock.at)


def test_after_the_clock_went_back_it_starts_again() -> None:
    source, clock = Source(), SettableClock()
    guard = CheckedReadings("x", source, clock, 90.0, 30.0)
    guard()
    clock.at = 400.0
    source.reading = replace(WELL, time=400.0)
    with pytest.raises(SourceError, match="time went back by 600 s"):
        guard()
    assert guard() is source.reading


def test_a_target_that_was_removed_is_forgotten_after_an_hour() -> None:
    source, clock = Source(), SettableClock()
    guard = CheckedReadings("x", source, clock, 1e9, 30.0)
    guard()
    source.reading = replace(WELL, targets=frozenset({"l-OST0000"}))
    clock.at += FORGET_SECONDS - 1
    with pytest.raises(SourceError, match="l-OST0001 not to be seen for 3599 s"):
        guard()
    clock.at += 2
    assert guard() is source.reading


def test_a_job_that_comes_back_from_idleness_brings_no_sudden_load() -> None:
    before = Reading(0.0, {}, frozenset({"l-OST0000"}), omits_idle_jobs=True)
    back = {("l-OST0000", "j"): JobCounters({"write": 1e9}, {"write_bytes": 1e15})}
    assert not window(before, replace(before, time=5.0, jobs=back)).loads


@dataclass
class Record:
    time: float


@dataclass
class Records:
    found: tuple[Record, ...] = ()
    fault: str = ""

    def batches(self) -> tuple[tuple[Record, ...], ...]:
        if self.fault:
            raise ChangelogError(self.fault)
        return (self.found,)


def test_records_state_their_age_and_may_not_come_from_the_future() -> None:
    source, clock = Records(), SettableClock()
    aged = CheckedRecords("changelog", source, clock, 90.0, 30.0)  # type: ignore[arg-type] # time is all that is looked at
    assert aged.age.state(clock.at) == "nothing yet"
    assert list(aged.batches()) == [()]
    clock.at += 100
    assert aged.age.state(clock.at) == "100 s old, and must be no older than 90 s"
    source.fault = "records 3 to 9 are missing"
    with pytest.raises(ChangelogError):
        list(aged.batches())
    assert "records 3 to 9 are missing" in aged.age.state(clock.at)
    source.fault, source.found = "", (Record(clock.at + 3600),)
    with pytest.raises(ChangelogError, match="3600 s ahead of this node's clock"):
        list(aged.batches())
