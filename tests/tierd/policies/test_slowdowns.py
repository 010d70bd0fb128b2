"""Findings of streams that lose throughput: when they begin and end, and what they say."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream, window
from tierd.config.settings import Settings
from tierd.detect.accelerators import Accelerator
from tierd.detect.interference import Loss
from tierd.detect.profile import profiles
from tierd.detect.view import SlowdownSettings, SlowdownView, is_found
from tierd.engine import Engine
from tierd.model import (
    Activities,
    DirectoryActivity,
    DiskWrites,
    Facts,
    Finding,
    JobLoad,
    NamespaceLoad,
    SlowdownEvidence,
    Window,
)
from tierd.policies import noisy_neighbour, shared_bandwidth
from tierd.text import Carrier

Part = list[JobLoad] | tuple[list[JobLoad], NamespaceLoad]
SETTINGS = SlowdownSettings()
JOBS = ("s.1", "m.2", "f.3", "b.4", "t.5")
SEEN = [window(0, stream("s.1", 44), small_files("m.2", 20), small_io("f.3", 40), small_io("b.4", 40, 128 << 10),
               stream("t.5", 20))]
LOSS = Loss(0, (1,), (0, 1, 2, 3), 44e6, 0.4, 0.1, Carrier.ARRIVAL, 30.0)


def view(*losses: Loss, rivals: Sequence[Loss] = (), active: Iterable[tuple[str, str, str]] = ()) -> SlowdownView:
    return SlowdownView(100.0, losses, rivals, JOBS, TARGETS, profiles(SEEN), {*active}, {}, {}, {})


def only(found: Iterable[Finding]) -> Finding:
    (finding,) = found
    return finding


def test_a_finding_has_the_numbers_of_the_posterior() -> None:
    found = only(noisy_neighbour.find_slowed(view(LOSS), SETTINGS))
    assert (found.kind, found.aggressor, found.victim, found.targets) == ("noisy-neighbour", "m.2", "s.1", TARGETS)
    assert not found.advice_only
    evidence: Any = found.evidence
    assert evidence.victim_usual_bytes_per_second == pytest.approx(44e6 / (1 - LOSS.share))
    assert evidence.slowdown == pytest.approx(1 / (1 - LOSS.share))
    assert (evidence.loss_low, evidence.loss_high) == (LOSS.quantile(-1.645), LOSS.quantile(1.645))
    assert evidence.loss_probability == LOSS.probability(0.05)
    assert (evidence.carrier, evidence.aggressor_came_at, evidence.lacks_past) == (Carrier.ARRIVAL, 30.0, False)
    assert evidence.aggressor_files_per_second == pytest.approx(20)
    assert evidence.aggressor_bytes_per_file == pytest.approx(MIB)


@pytest.mark.parametrize(("carrier", "words"), [
    (Carrier.ARRIVAL, ", since m.2 started; m.2 accesses files 20 times/s, 1 MiB each, on the same 4 targets; loss"),
    (Carrier.LOAD, ", and less when m.2 does more; m.2 accesses"),
    (Carrier.HISTORY, ", alongside m.2, compared with its earlier throughput; m.2 accesses"),
    (Carrier.DEVICE_TIME, ", alongside m.2 (by device time alone); m.2 accesses"),
])
def test_a_sentence_says_what_the_loss_rests_on(carrier: Carrier, words: str) -> None:
    sentence = only(noisy_neighbour.find_slowed(view(replace(LOSS, carrier=carrier)), SETTINGS)).sentence
    assert sentence.startswith(f"s.1 streams at 44.0 MB/s instead of 65.6 MB/s (67%){words}")


def test_small_io_is_no_files_and_requests_in_between_are_advice() -> None:
    found = only(noisy_neighbour.find_slowed(view(replace(LOSS, suspects=(2,))), SETTINGS))
    assert found.evidence.numbers()["aggressor_bytes_per_file"] == 0
    assert "f.3 sends 40 RPCs/s of 4 KiB" in found.sentence
    assert not found.advice_only
    fast = dict.fromkeys(TARGETS, Accelerator(65536, MIB, 400.0, 9000.0))
    found = only(noisy_neighbour.find_slowed(replace(view(replace(LOSS, suspects=(2,))), accelerators=fast), SETTINGS))
    assert (found.advice_only, len(found.advice)) == (True, 1), "they absorb its writes"
    assert only(noisy_neighbour.find_slowed(view(replace(LOSS, suspects=(3,))), SETTINGS)).advice_only


@given(st.floats(0, 2), st.floats(0.01, 1), st.booleans())
def test_a_finding_ends_at_a_lower_probability_than_it_began(mean: float, error: float, active: bool) -> None:
    loss = replace(LOSS, mean=mean, error=error)
    key = [("noisy-neighbour", "m.2", "s.1")] if active else []
    assert bool([*noisy_neighbour.find_slowed(view(loss, active=key), SETTINGS)]) == (
        loss.probability(0.05) >= (0.5 if active else 0.6))
    assert is_found(loss, True, SETTINGS) >= is_found(loss, False, SETTINGS)


def test_shared_bandwidth_is_advice() -> None:
    loss = replace(LOSS, suspects=(4,))
    found = only(shared_bandwidth.find_slowed(view(rivals=[loss]), SETTINGS))
    assert (found.kind, found.aggressor, found.victim, found.advice_only) == ("shared-bandwidth", "t.5", "s.1", True)
    assert type(found.evidence) is SlowdownEvidence
    assert "since t.5 streams to the same 4 targets at 20.0 MB/s; flash for small files would not" in found.sentence
    seen = view(rivals=[loss])
    one = replace(seen.profiles["t.5"], by_target=dict([*seen.profiles["t.5"].by_target.items()][:1]))
    on_one = only(shared_bandwidth.find_slowed(replace(seen, profiles={"t.5": one}), SETTINGS))
    assert "since t.5 streams to the same 1 target at" in on_one.sentence
    more = replace(seen, targets=(*TARGETS, "lustre-OST0009"))
    elsewhere = only(shared_bandwidth.find_slowed(more, SETTINGS))
    assert "other targets for one of the two jobs would help" in elsewhere.sentence
    assert not [*shared_bandwidth.find_slowed(view(rivals=[replace(loss, mean=0.05)]), SETTINGS)]
    assert not [*noisy_neighbour.find_slowed(view(rivals=[loss]), SETTINGS)]


# with an engine, from windows to findings

def found(windows: Iterable[Window], activities: Activities = lambda *_: (), settings: Settings | None = None,
          pools: dict[str, tuple[str, ...]] | None = None) -> list[list[Finding]]:
    """Slowdowns after each window."""
    engine = Engine(settings or Settings())
    facts = Facts(pools={"hdd": TARGETS} if pools is None else pools)
    return [[each for each in engine.run_cycle(seen, activities, lambda: facts).findings
             if isinstance(each.evidence, SlowdownEvidence)] for seen in windows]


def episode(*noise: Part, noisy: int = 8, now: float = 44.0) -> list[Window]:
    """Some windows of a stream alone, then some with noise beside it."""
    return [*after(0, 8, stream("s.1", 66)), *after(8, noisy, stream("s.1", now), *noise)]


def after(number: int, count: int, *parts: Part) -> list[Window]:
    return [window(number + n, *parts) for n in range(count)]


def pairs(windows: Iterable[Window]) -> list[tuple[str, str, str]]:
    """Slowdowns after the last window that are as sure as an act needs."""
    return [(each.kind, each.aggressor, each.victim) for each in found(windows)[-1]
            if isinstance(each.evidence, SlowdownEvidence) and each.evidence.loss_probability >= 0.85]


@pytest.mark.parametrize(("target", "slow", "lost"), [
    (3, (30.0, 30.0, 30.0), True), (3, (300.0, 300.0, 30.0), False), (3, (30.0, 300.0, 300.0), False),
    (3, (30.0, 30.0, 300.0), True), (0, (300.0, 300.0, 300.0), True)])
def test_a_stream_that_waits_for_the_slowest_of_its_targets_loses_nothing_to_a_neighbour_on_another(
        target: int, slow: Sequence[float], lost: bool) -> None:
    """The disks of a pool differ. Two of three readings must show it, with requests that take ten times as long."""
    disks = {each: tuple(DiskWrites(15.0 * n, request_msec=msec if number == target else 30.0)
                         for n, msec in enumerate(slow)) for number, each in enumerate(TARGETS)}
    engine, facts = Engine(Settings()), Facts(pools={"hdd": TARGETS}, disk_writes=disks)
    reads = [JobLoad(TARGETS[0], "f.2", read_bytes=200 * 4096, reads=200, sizes={4096: 200})]
    looks = [engine.run_cycle(seen, lambda *_: (), lambda: facts) for seen in after(0, 9, stream("s.1", 44), reads)]
    assert any(each.findings for each in looks) is lost


@pytest.mark.parametrize(("windows", "expected"), [
    pytest.param(episode(small_io("f.2", 48)), [("noisy-neighbour", "f.2", "s.1")], id="small random writes"),
    pytest.param(episode(small_files("m.2", 15), small_files("n.3", 15)),
                 [("noisy-neighbour", "m.2", "s.1"), ("noisy-neighbour", "n.3", "s.1")], id="two neighbours"),
    pytest.param(episode(small_files("m.2", 30), small_files("x.3", 1, 64 << 10)),
                 [("noisy-neighbour", "m.2", "s.1")], id="a neighbour and a trickle"),
    pytest.param(episode(stream("t.2", 33), now=33.0), [("shared-bandwidth", "t.2", "s.1")], id="a second stream"),
    pytest.param(episode(now=32.0), [], id="a slow disk"),
    pytest.param(episode(small_files("m.2", 0.5), now=32.0), [], id="a slow disk and a trickle"),
    pytest.param(episode(small_files("m.2", 20, targets=("lustre-OST0000", "lustre-OST0001"))), [],
                 id="a neighbour on other targets"),
    pytest.param([window(n, stream("s.1", 33), stream("t.2", 33)) for n in range(20)], [], id="two streams, always"),
    pytest.param([window(n, small_files("m.2", 20)) for n in range(20)], [], id="no stream"),
    pytest.param(episode(small_files("m.2", 20), now=64.0), [], id="a neighbour that costs nothing"),
    pytest.param([*episode(noisy=4, now=40.0), *after(12, 8, stream("s.1", 40), small_files("m.2", 20))], [],
                 id="slow before the neighbour came"),
    pytest.param([*episode(small_files("m.2", 10), noisy=14, now=65.0),
                  *after(22, 12, stream("s.1", 35), small_files("m.2", 10))], [],
                 id="slow long after the neighbour came"),
    pytest.param([*episode(small_files("m.2", 20), noisy=20, now=65.0),
                  *after(28, 12, stream("s.1", 50), stream("backup.9", 20), small_files("m.2", 20))],
                 [("shared-bandwidth", "backup.9", "s.1")], id="a backup beside a harmless neighbour"),
])
def test_the_expected_jobs_are_blamed(windows: list[Window], expected: list[tuple[str, str, str]]) -> None:
    assert sorted(pairs(windows)) == expected


def test_without_pools_or_with_targets_in_trouble_nothing_is_found() -> None:
    assert not any(found(episode(small_files("m.2", 20)), pools={}))
    in_trouble = dict.fromkeys(TARGETS, "degraded")
    assert not any(found(replace(each, conditions=in_trouble) for each in episode(small_files("m.2", 20))))


@pytest.mark.parametrize(("seconds", "count"), [(20.0, 4), (40.0, 8)])
def test_an_engine_that_takes_over_continues_and_keeps_what_its_own_verdicts_need(seconds: float, count: int) -> None:
    """A longer judge_seconds took effect at a restart only: windows before the act were missing in each verdict."""
    windows, facts = episode(small_files("m.2", 20), noisy=10), Facts(pools={"hdd": TARGETS})
    first, second = (Engine(replace(Settings(), verify=replace(Settings().verify, judge_seconds=each)))
                     for each in (20.0, seconds))
    for seen in windows[:8]:
        first.run_cycle(seen, lambda *_: (), lambda: facts)
    second.take_over(first, ())
    begun = [each for seen in windows[8:] for each in second.run_cycle(seen, lambda *_: (), lambda: facts).begun]
    evidence: Any = only(begun).evidence
    assert evidence.carrier is Carrier.ARRIVAL
    assert len(second.tracks.known["s.1"].windows) == count


# arrays of tasks: many job ids, one neighbour

TASKS = 50


def findings(windows: Sequence[Window], places: Callable[[str], str] = lambda _job: "/proj/in") -> list[Finding]:
    """Noisy neighbours after the last window, of jobs that work in these directories."""
    def activities(job: str, _since: float) -> Sequence[DirectoryActivity]:
        return (DirectoryActivity(job, places(job), creates=9, closes=9, lately=9, last_time=windows[-1].end),)

    return [each for each in found(windows, activities)[-1] if each.kind == "noisy-neighbour"]


def tasks(name: Callable[[int], str], count: int = TASKS) -> list[Part]:
    return [small_files(name(task), 20.0 / count) for task in range(count)]


@pytest.mark.parametrize(("name", "array"), [
    (lambda task: f"1234_{task}", "1234_[]"),
    (lambda task: f"1234[{task}].pbs01", "1234[].pbs01"),
    (lambda task: f"{700 + task}", "[]@/proj/in"),
    (lambda task: f"task{task}.1001", "task[].1001@/proj/in"),
])
def test_fifty_equal_tasks_are_one_neighbour(name: Callable[[int], str], array: str) -> None:
    finding = only(findings(episode(*tasks(name))))
    assert (finding.aggressor, finding.victim) == (array, "s.1")
    assert set(finding.tasks) == {name(task) for task in range(TASKS)}
    assert finding.directories == ("/proj/in",)
    assert finding.evidence.numbers()["aggressor_files_per_second"] == pytest.approx(20.0)


def test_directories_of_all_tasks_are_named() -> None:
    finding = only(findings(episode(*tasks(lambda task: f"1234_{task}")), lambda job: f"/proj/run/{job}"))
    assert set(finding.directories) == {f"/proj/run/1234_{task}" for task in range(TASKS)}


@pytest.mark.parametrize("count", [2, 6, 7, 10])
def test_few_tasks_are_judged_one_by_one_and_all_are_named(count: int) -> None:
    named = findings(episode(*tasks(lambda task: f"1234_{task}", count)))
    assert len({task for each in named for task in each.tasks or (each.aggressor,)}) >= 0.8 * count


def test_streams_of_an_array_stay_jobs_of_their_own() -> None:
    """Each may be the victim of another neighbour."""
    def streams(rate: float) -> list[Part]:
        return [stream(f"1234_{task}", rate) for task in range(12)]

    windows = [*after(0, 8, *streams(5.5)), *after(8, 8, *streams(3.7), small_files("m.2", 20))]
    assert {("m.2", f"1234_{task}") for task in range(12)} == {(f.aggressor, f.victim) for f in findings(windows)}
