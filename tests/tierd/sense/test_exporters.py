"""Many exporters at once: what is late, lost or doubled; and whether a reading may be believed."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.collectors import COLLECTORS
from tests.tierd.logged import logged
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.sense.loopback_server import Behave, answers, liar
from tierd.clock import SystemClock
from tierd.config.sense import ServerAccess
from tierd.model import UNSEEN, Window
from tierd.sense import exposition
from tierd.sense.counters import JobEntry
from tierd.sense.exporters import MAX_THREADS, Answer, ExporterReadings, HttpAnswers, ParallelFetch
from tierd.sense.freshness import FORGET_SECONDS, CheckedReadings
from tierd.sense.http_client import HttpClient, SourceError
from tierd.sense.readings import Reading, Stamp, window


def page(target: str, written: int = 1) -> str:
    return (f'lustre_ost_recovering{{fs="l",target="{target}"}} 0\n'
            f'lustre_job_write_bytes_total{{fs="l",target="{target}",jobid="j"}} {written}\n')


def broken(status: str = "500 No") -> Behave:
    return answers("", status=status)


def scraping(urls: list[str], seconds: float = 5.0) -> ExporterReadings:
    client = HttpClient(ServerAccess(max_bytes=1 << 20), seconds, {})
    return ExporterReadings(lambda: urls, HttpAnswers(client, SystemClock(), seconds, 30.0), SystemClock())


def test_an_exporter_that_fails_leaves_out_its_targets_only() -> None:
    with pytest.raises(SourceError, match="no exporter is configured"):
        scraping([])()
    with liar(broken()) as bad, pytest.raises(SourceError, match=r"500 No.* \(since 20"):
        scraping([bad.url])()
    with liar(answers(page("OST0000"))) as well, liar(broken()) as bad:
        read = scraping([well.url, bad.url])
        assert read().targets == {"l-OST0000"}
        assert "500 No" in read.problem
        assert "since 20" in read.problem


def test_a_server_whose_targets_its_partner_shows_is_not_missed() -> None:
    one, other = page("OST0000"), page("OST0001")
    with liar([answers(one), broken()]) as failing, liar([answers(other), answers(other + one)]) as partner:
        read = scraping([failing.url, partner.url])
        assert read().targets == {"l-OST0000", "l-OST0001"}
        assert read().targets == {"l-OST0000", "l-OST0001"}
        assert "500 No" in read.problem


def test_a_bug_in_one_answer_does_not_leave_the_others_waiting() -> None:
    def ask(url: str) -> str:
        if url == "bad":
            raise KeyError("oops")
        return url

    found, problems = ParallelFetch(ask, 5.0)(["good", "bad", "good"])
    assert found == {"good": "good"}
    assert "KeyError" in str(problems["bad"])
    assert threading.active_count() < 50


def test_a_rack_without_power_delays_the_others_once() -> None:
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
    assert found == [0, 20, 20, 20, 20, 20], "late answers of the first round count in the second"


def test_an_exporter_whose_clock_differs_is_an_error() -> None:
    late = answers(page("OST0000"), "text/plain", "Date: Thu, 01 Jan 2026 00:00:00 GMT")
    with liar(late) as server, pytest.raises(SourceError, match="its clock differs from this node's by -"):
        scraping([server.url])()


WELL = Reading(1000.0, {("l-OST0000", "j"): JobEntry({"write": 5.0}, {})}, frozenset({"l-OST0000", "l-OST0001"}))


@dataclass
class Source:
    reading: Reading = WELL

    def __call__(self) -> Reading:
        return self.reading


@pytest.mark.parametrize(("reading", "words"), [
    (replace(WELL, targets=frozenset()), "no target is seen at all"),
    (replace(WELL, time=909.0), "stale: its samples are 91 s old, and must be no older than 90 s"),
    (replace(WELL, time=1031.0), "31 s ahead of this node's clock"),
    (replace(WELL, time=990.0), "its samples are 10 s older than the samples before"),
])
def test_an_implausible_reading_is_an_error(reading: Reading, words: str) -> None:
    source, clock = Source(), SettableClock()
    guard = CheckedReadings("exporters", source, clock, 90.0, 30.0)
    assert guard() == WELL
    assert guard.jobs == {"j"}
    source.reading = reading
    with pytest.raises(SourceError, match=words):
        guard()
    assert guard.age.stale
    assert words in guard.age.state


def test_readings_start_again_after_the_clock_went_back() -> None:
    source, clock = Source(), SettableClock()
    guard = CheckedReadings("x", source, clock, 90.0, 30.0)
    guard()
    clock.at = 400.0
    source.reading = replace(WELL, time=400.0)
    with pytest.raises(SourceError, match="time went back by 600 s"):
        guard()
    assert guard() == source.reading


def test_a_target_that_was_removed_is_named_and_forgotten_after_an_hour() -> None:
    source, clock = Source(), SettableClock()
    guard = CheckedReadings("x", source, clock, 1e9, 30.0)
    guard()
    source.reading = replace(WELL, targets=frozenset({"l-OST0000"}))
    clock.at += FORGET_SECONDS - 1
    assert guard().conditions == {"l-OST0001": UNSEEN}
    assert "without l-OST0001, not seen since 1970-01-01 00:16:40 UTC" in guard.age.state
    clock.at += 2
    assert guard() == source.reading


MB = 1e6
RATE = 70 * MB
"""Bytes per second that each simulated server really serves."""


@dataclass
class Rack:
    """Servers with one target each that serve at one rate, and exporters that answer as a test says."""

    clock: SettableClock
    servers: int
    skew_seconds: tuple[float, ...] = ()
    """What the clock of each server is ahead."""

    def answer(self, server: int, asked: float, read: float, answered: float) -> Answer:
        target = f"l-OST{server:04x}"
        ahead = self.skew_seconds[server] if self.skew_seconds else 0.0
        jobs = {(target, "ior.1"): JobEntry({"write_bytes": read, "write": read}, {"write_bytes": RATE * read})}
        return Answer(Reading(answered, jobs, frozenset({target}),
                              stamps={target: Stamp("", read + ahead)}), asked, answered)

    @property
    def urls(self) -> list[str]:
        return [f"http://oss{n}" for n in range(self.servers)]


def rate(seen: Window, target: str) -> float | None:
    load = seen.loads.get((target, "ior.1"))
    return None if load is None else load.write_bytes / seen.seconds_of(target)


def windows_of(read: Callable[[], Reading], clock: SettableClock, cycles: int) -> list[Window | None]:
    """The windows of cycles of 5 s; None without a new reading."""
    found: list[Window | None] = []
    last: Reading | None = None
    for _ in range(cycles):
        clock.at += 5
        reading = read()
        new = last is None or reading.time > last.time
        found.append(window(last, reading) if new and last is not None else None)
        last = reading if new else last
    return found


def test_with_one_server_of_five_down_for_an_hour_the_others_have_windows_all_the_time() -> None:
    clock = SettableClock()
    rack = Rack(clock, 5, (-3.0, -1.0, 0.0, 1.0, 3.0))
    begun = clock.at

    def ask(urls: Sequence[str]) -> tuple[dict[str, Answer], dict[str, SourceError]]:
        down = {"http://oss3"} if 60 <= clock.at - begun < 3660 else set()
        return ({url: rack.answer(n, clock.at, clock.at + 0.1, clock.at + 0.2)
                 for n, url in enumerate(urls) if url not in down},
                {url: SourceError(f"{url}: no answer within 4 s") for url in down})

    said = logged()
    exporters = ExporterReadings(lambda: rack.urls, ask, clock)
    guard = CheckedReadings("exporters", exporters, clock, 90.0, 30.0, lambda: exporters.problem)
    windows = windows_of(guard, clock, 780)
    others = [target for n in range(5) if (target := f"l-OST{n:04x}") != "l-OST0003"]
    for number, seen in enumerate(windows[1:], 1):
        assert seen is not None
        assert all(rate(seen, target) == pytest.approx(RATE, rel=1e-6) for target in others)
        down = 60 <= (number + 1) * 5 < 3660
        assert rate(seen, "l-OST0003") is None if down else True
        assert seen.unseen == ({"l-OST0003"} if down or number == 731 else set()), number
    assert rate(windows[740] or Window(0, 1, {}, {}), "l-OST0003") == pytest.approx(RATE, rel=1e-6)
    assert said == [("exporters do not answer: http://oss3: no answer within 4 s (since 1970-01-01 00:17:40 UTC); "
                     "tierd finds nothing on their targets"), "all exporters answer again"]


@given(st.lists(st.tuples(st.floats(0.2, 12.0), st.floats(0.0, 1.0), st.sampled_from(("read", "lost", "doubled"))),
                min_size=6, max_size=40))
def test_no_answer_however_late_makes_a_rate_that_was_not(course: list[tuple[float, float, str]]) -> None:
    clock = SettableClock()
    rack, answered, coming = Rack(clock, 1, (17.0,)), [clock.at], iter(course)
    last: list[Answer] = []
    pending: list[Answer | None] = []

    def ask(urls: Sequence[str]) -> tuple[dict[str, Answer], dict[str, SourceError]]:
        found: Answer | None = None
        if answered[-1] <= clock.at:
            found = pending.pop() if pending else None
            seconds, part, kind = next(coming, (0.2, 0.5, "read"))
            answer = rack.answer(0, clock.at, clock.at + part * seconds, clock.at + seconds)
            if kind == "doubled" and last:
                answer = replace(last[-1], asked=clock.at, answered=clock.at + seconds)
            last.append(answer)
            answered.append(answer.answered)
            pending.append(None if kind == "lost" else answer)
            if seconds <= 4.0:
                found = pending.pop() or found
        return ({}, {urls[0]: SourceError("late")}) if found is None else ({urls[0]: found}, {})

    def read() -> Reading:
        try:
            return exporters()
        except SourceError:  # blind
            return Reading(clock.at, {}, frozenset())

    exporters = ExporterReadings(lambda: rack.urls, ask, clock)
    for seen in windows_of(read, clock, len(course) * 3):
        if seen is not None and (moved := rate(seen, "l-OST0000")) is not None:
            assert moved == pytest.approx(RATE, rel=1e-6)


IDLE, BEYOND = "lustre_jobs_idle", "lustre_jobs_beyond_limit"


@pytest.mark.parametrize(("hidden", "counts"), [
    ({IDLE: 0}, True), ({IDLE: 0, BEYOND: 0}, True), ({}, False), ({IDLE: 1}, False), ({IDLE: 0, BEYOND: 1}, False)])
def test_a_new_entry_counts_if_the_answer_before_had_all(hidden: dict[str, int], counts: bool) -> None:
    of = '{fs="l",target="OST0000"'
    before, after = (exposition.reading_of("".join([
        *[f"{name}{of}}} {number}\n" for name, number in hidden.items()],
        *[f'lustre_job_operations_total{of},jobid="{job}",operation="write"}} 9\n' for job in jobs]]).encode(), "", at)
        for at, jobs in ((5.0, "b"), (10.0, "ab")))
    assert [job for _, job in window(before, after).loads] == ["a"] * counts


def test_no_rate_is_made_from_the_times_of_two_clocks() -> None:
    def at(time: float, clock: str, seconds: float, written: float) -> Reading:
        target = "l-OST0000"
        return Reading(time, {(target, "j"): JobEntry({"write_bytes": written}, {"write_bytes": written})},
                       frozenset({target}), stamps={target: Stamp(clock, seconds)})

    assert window(at(0, "oss1 0", 100, 10), at(5, "oss1 0", 103, 40)).spans == {"l-OST0000": 3}
    for after in (at(5, "oss1 1", 103, 40), at(5, "oss2 0", 103, 40), at(5, "oss1 0", 100, 10), at(5, "oss1 0", 99, 40),
                  at(5, "oss1 0", 131, 40), replace(at(5, "oss1 0", 103, 40), stamps={})):
        seen = window(at(0, "oss1 0", 100, 10), after)
        assert (seen.loads, seen.unseen) == ({}, {"l-OST0000"})


def test_a_late_answer_counts_in_the_next_call_and_others_do_not_wait_for_it() -> None:
    go_on = threading.Event()
    asked: list[str] = []

    def ask(url: str) -> str:
        asked.append(url)
        if url == "slow" and asked.count("slow") == 1:
            go_on.wait(60)
        return f"{url} {asked.count(url)}"

    fetch: ParallelFetch[str] = ParallelFetch(ask, 0.2)
    found, problems = fetch(["quick", "slow"])
    assert (found, set(problems)) == ({"quick": "quick 1"}, {"slow"})
    first = problems["slow"]
    assert "no answer within 0.2 s" in str(first)
    found, problems = fetch(["quick", "slow"])
    assert (found, set(problems)) == ({"quick": "quick 2"}, {"slow"})
    assert problems["slow"] is first, "the same words, which are logged once"
    assert asked.count("slow") == 1
    go_on.set()
    for thread in [each for each in threading.enumerate() if each.name.startswith("tierd-scrape")]:
        thread.join(0.5)
    found, problems = fetch(["quick", "slow"])
    assert (set(found), problems) == ({"quick", "slow"}, {})
    assert found["slow"].startswith("slow ")


def test_each_of_many_slow_exporters_is_read_in_turn() -> None:
    turn, answers_made = threading.Semaphore(0), threading.Semaphore(0)

    def ask(url: str) -> str:
        turn.acquire(timeout=60)
        answers_made.release()
        return url

    urls = [f"oss{n}" for n in range(3 * MAX_THREADS)]
    fetch: ParallelFetch[str] = ParallelFetch(ask, 0.05)
    answered: set[str] = set()
    end = monotonic() + 60
    while answered != {*urls} and monotonic() < end:
        answered |= fetch(urls)[0].keys()
        turn.release(MAX_THREADS)
        answers_made.acquire(timeout=1)
    assert answered == {*urls}
    turn.release(10 * len(urls))


def test_exporters_are_asked_for_the_collectors_that_count_only() -> None:
    with liar(answers(page("OST0000"))) as plain, liar(answers(page("OST0001"))) as chosen:
        scraping([plain.url, f"{chosen.url}?collect[]=jobs"])()
    (request,), (own,) = plain.requests, chosen.requests
    assert parse_qs(urlsplit(request.split()[1]).query) == {"collect[]": sorted(exposition.READ_COLLECTORS)}
    assert parse_qs(urlsplit(own.split()[1]).query) == {"collect[]": ["jobs"]}


def test_an_exporter_without_one_of_these_collectors_is_asked_for_all_that_it_has() -> None:
    whole = page("OST0000") + page("OST0001")
    with liar([answers("no lod", status="400 Bad Request"), answers(whole), answers(page("OST0000", 2))]) as server:
        read = scraping([server.url])
        assert read().targets == {"l-OST0000", "l-OST0001"}
        read()
        assert ["collect" in request for request in server.requests] == [True, False, False]


def test_the_collectors_that_are_asked_for_show_all_that_is_read() -> None:
    shown = {family.name: collector.name for collector in COLLECTORS for family in collector.families}
    wanted = {*exposition.JOB_FAMILIES, exposition.READ_AT, *exposition.CONDITION_FAMILIES,
              *exposition.CHANGELOG_FAMILIES, exposition.NONROTATIONAL, *exposition.DATA_LIMITS,
              "lustre_service_requests_total"}
    needed = {shown[name.removesuffix("_bucket").removesuffix("_count") if "io_size" in name else name]
              for name in wanted}
    assert {"ost" if name == "mdt" else name for name in needed} == {*exposition.READ_COLLECTORS}


@pytest.mark.parametrize(("read", "clock"), [((9.0, 14.0), 0), ((12.0, 12.0), 1)])
def test_a_clock_that_was_set_shows_and_a_target_that_was_not_read_again_is_no_sign(
        read: tuple[float, float], clock: int) -> None:
    def answered(at: float, *stamps: float) -> Answer:
        times = {f"l-OST000{number}": Stamp("", stamp) for number, stamp in enumerate(stamps)}
        return Answer(replace(WELL, stamps=times), at, at)

    first = answered(9.0, 9.0, 9.0)
    assert answered(9.0, 9.0, 9.0).after(first) is first
    assert {stamp.clock for stamp in answered(14.0, *read).after(first).stamps("oss").values()} == {f"oss {clock}"}


@pytest.mark.parametrize(("took", "known"), [(0.1, True), (1.0, False)])
def test_counters_without_a_time_count_only_if_the_request_was_short(took: float, known: bool) -> None:
    clock = SettableClock()

    def behave(to: object, _: str) -> None:
        clock.at += took
        answers(page("OST0000"))(to, "")  # type: ignore[arg-type]

    with liar(behave) as server:
        client = HttpClient(ServerAccess(max_bytes=1 << 20), 5.0, {})
        read = ExporterReadings(lambda: [server.url], HttpAnswers(client, clock, 5.0, 30.0), clock)
        if known:
            assert read().stamps["l-OST0000"].seconds == pytest.approx(1000.0 + took / 2)
        else:
            with pytest.raises(SourceError, match=r"does not show when it read its counters, and took 1\.0 s"):
                read()
