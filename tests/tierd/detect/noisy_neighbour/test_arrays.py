"""Arrays of tasks: many job ids, one neighbour."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.tierd.worlds import MIB, small_files, stream, window
from tierd.config.settings import Settings
from tierd.engine import Engine
from tierd.model import DirectoryActivity, Finding, Window

TASKS = 50


def findings(windows: Sequence[Window], places: Callable[[str], str] = lambda _job: "/proj/in") -> list[Finding]:
    """Noisy neighbours after the last window."""
    engine = Engine(Settings())

    def activities(job: str, _since: float) -> Sequence[DirectoryActivity]:
        return (DirectoryActivity(job, places(job), creates=9, closes=9, lately=9, last_time=windows[-1].end),)

    for each in windows:
        found = engine.run_cycle(each, activities).findings
    return [finding for finding in found if finding.kind == "noisy-neighbour"]


def beside(name: Callable[[int], str], count: int = TASKS, files_s: float = 20.0) -> list[Window]:
    """A stream that loses a third since tasks came which together create 20 files a second."""
    tasks = [small_files(name(task), files_s / count) for task in range(count)]
    return [window(n, stream("s.1", 66.0)) if n < 8 else window(n, stream("s.1", 44.0), *tasks) for n in range(16)]


@pytest.mark.parametrize(("name", "array"), [
    (lambda task: f"1234_{task}", "1234_[]"),
    (lambda task: f"1234[{task}].pbs01", "1234[].pbs01"),
    (lambda task: f"{700 + task}", "[]@/proj/in"),
    (lambda task: f"task{task}.1001", "task[].1001@/proj/in"),
])
def test_fifty_equal_tasks_are_one_neighbour(name: Callable[[int], str], array: str) -> None:
    (finding,) = findings(beside(name))
    assert (finding.aggressor, finding.victim) == (array, "s.1")
    assert set(finding.tasks) == {name(task) for task in range(TASKS)}
    assert finding.directories == ("/proj/in",)
    assert finding.evidence.numbers()["aggressor_files_per_second"] == pytest.approx(20.0)
    assert finding.evidence.numbers()["aggressor_bytes_per_file"] == pytest.approx(MIB)


def test_directories_of_all_tasks_are_named() -> None:
    (finding,) = findings(beside(lambda task: f"1234_{task}"), lambda job: f"/proj/run/{job}")
    assert set(finding.directories) == {f"/proj/run/1234_{task}" for task in range(TASKS)}


def test_few_tasks_are_judged_one_by_one() -> None:
    assert {finding.aggressor for finding in findings(beside(lambda task: f"1234_{task}", count=5))} <= {
        f"1234_{task}" for task in range(5)}


def test_fifty_jobs_of_fifty_users_are_no_array() -> None:
    assert findings(beside(lambda task: f"untar.{1000 + task}")) == []


def test_an_array_that_costs_nothing_is_not_blamed() -> None:
    tasks = [small_files(f"1234_{task}", 0.4) for task in range(TASKS)]
    assert findings([window(n, stream("s.1", 66.0), *(tasks if n >= 8 else ())) for n in range(20)]) == []


def test_streams_of_an_array_stay_jobs_of_their_own() -> None:
    """Each may be the victim of another neighbour."""
    streams = [stream(f"1234_{task}", 66.0) for task in range(12)]
    slower = [stream("1234_0", 40.0), *streams[1:]]
    windows = [window(n, *streams) if n < 8 else window(n, *slower, small_files("m.2", 20)) for n in range(16)]
    assert ("m.2", "1234_0") in {(finding.aggressor, finding.victim) for finding in findings(windows)}
