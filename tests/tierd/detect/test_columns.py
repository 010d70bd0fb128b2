"""Windows as columns say the same of jobs as the windows themselves."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream, window
from tierd.detect.columns import (
    MIN_SMALL_RPCS,
    JobKinds,
    RecentWindows,
    WindowColumns,
    kinds_of_jobs,
    pool_numbers,
    recent_work,
    window_columns,
)
from tierd.detect.profile import SMALL_SHARE, Classes, Profile, profiles
from tierd.loads import Names
from tierd.model import Facts, JobLoad, NamespaceLoad, Window

CLASSES = Classes()
COUNTS = st.one_of(st.just(0.0), st.integers(1, 50).map(float))
SIZES = st.sampled_from((4096, 64 << 10, 128 << 10, 256 << 10, MIB, 4 * MIB))


@st.composite
def loads(draw: st.DrawFn, target: str, job: str) -> JobLoad:
    """What a job did on a target."""
    reads, writes, size = draw(COUNTS), draw(COUNTS), draw(SIZES)
    sizes = {size: reads + writes} if reads + writes else {}
    return JobLoad(target, job, reads * size, writes * size, reads, writes, draw(COUNTS), 0.0, sizes)


@st.composite
def windows_of_jobs(draw: st.DrawFn) -> list[Window]:
    """Windows of a few jobs on a few targets. Only bytes and RPCs make a job active."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        done = {}
        for job in draw(st.sets(st.sampled_from("abcd"))):
            for target in draw(st.sets(st.sampled_from(TARGETS), min_size=1, max_size=2)):
                load = draw(loads(target, job))
                if load.bulk_operations:
                    done[target, job] = load
        names = {job: NamespaceLoad(job, closes=draw(COUNTS), creates=draw(COUNTS), unlinks=draw(COUNTS))
                 for job in draw(st.sets(st.sampled_from("abcd")))}
        found.append(Window(5.0 * number, 5.0 * number + 5.0, done, names))
    return found


def columns(windows: Sequence[Window]) -> tuple[list[WindowColumns], Names, Names, JobKinds]:
    targets, jobs = Names(), Names()
    made = [window_columns(each, targets, jobs, CLASSES.small_rpc_bytes) for each in windows]
    return made, targets, jobs, kinds_of_jobs(made, len(jobs.by_number), CLASSES)


def turned_to_small_io(newest: Profile) -> bool:
    share = newest.small_rpc_share(CLASSES.small_rpc_bytes)
    return share >= SMALL_SHARE and share * newest.total.bulk_operations >= MIN_SMALL_RPCS


@given(windows_of_jobs())
def test_kinds_of_jobs_are_those_of_their_profiles(windows: list[Window]) -> None:
    """But for a job whose newest window is small I/O: it is that, whatever it did before."""
    _, _, jobs, kinds = columns(windows)
    newest = profiles(windows[-1:])
    for job, profile in profiles(windows).items():
        number = jobs[job]
        if job in newest and turned_to_small_io(newest[job]):
            assert kinds.suspect[number]
            continue
        assert kinds.stream[number] == profile.is_stream(CLASSES)
        files, small_io = profile.is_small_files(CLASSES), profile.is_small_io(CLASSES)
        assert kinds.suspect[number] == ((files or small_io or profile.is_in_between(CLASSES))
                                         and not profile.is_stream(CLASSES))
        assert kinds.waits_for_commits[number] == (
            small_io and not files and profile.mean_rpc_bytes < CLASSES.stream_rpc_bytes)


@given(windows_of_jobs())
def test_recent_work_is_the_mean_of_the_windows(windows: list[Window]) -> None:
    made, targets, jobs, kinds = columns(windows)
    found = recent_work(made, kinds, len(jobs)) if jobs else None
    seen = {} if found is None else {
        (target, job): work for target, job, work in zip(found.target.tolist(), found.job.tolist(), found.work.tolist(),
                                                         strict=True)}
    assert len(seen) == len({key for each in windows for key in each.loads})
    for (target, job), (read, written, ios) in seen.items():
        at = [load for each in windows for load in each.loads.values()
              if (targets[load.target], jobs[load.job]) == (target, job)]
        assert read == pytest.approx(sum(load.read_bytes for load in at) / (5 * len(windows)))
        assert written == pytest.approx(sum(load.write_bytes for load in at) / (5 * len(windows)))
        bulk = sum(load.bulk_operations for load in at) / (5 * len(windows))
        assert ios >= (0 if kinds.stream[job] else bulk) - 1e-9


def test_jobs_are_what_they_do() -> None:
    made, _, jobs, kinds = columns([window(0, stream("s.1", 60), small_files("m.2", 20), small_io("f.3", 40),
                                           small_io("b.4", 40, size=128 << 10))])
    assert [name for name, number in jobs.items() if kinds.stream[number]] == ["s.1"]
    assert [name for name, number in jobs.items() if kinds.suspect[number]] == ["m.2", "f.3", "b.4"]
    assert [name for name, number in jobs.items() if kinds.waits_for_commits[number]] == ["f.3"]
    work = {name: kinds.work(made[0])[made[0].job == number].sum(axis=0) for name, number in jobs.items()}
    assert work["f.3"][2] == pytest.approx(40 * 2.5), "a commit takes as long as one and a half of them"
    assert work["s.1"][2] == 0, "its RPCs are in order"
    assert work["m.2"][2] == pytest.approx(20 * (1 + 1.5)), "a sync of each file waits for its commit"


def test_destroys_count_for_the_job_that_deletes_its_files() -> None:
    """Lustre counts them for no job."""
    made, windows = small_files("m.2", 20), []
    for names in (made[1], replace(made[1], unlinks=made[1].creates)):
        (one,), _, jobs, kinds = columns([window(0, stream("s.1", 60), (made[0], names))])
        windows.append(kinds.work(one)[one.job == jobs["m.2"]].sum(axis=0)[2])
    assert windows[1] - windows[0] == pytest.approx(20)


def test_old_windows_leave_and_all_do_when_the_clock_goes_back() -> None:
    recent = RecentWindows(20.0, CLASSES)
    for number in range(10):
        recent.add(window(number, stream("s.1", 60)))
    assert [each.start for each in recent.windows] == [30.0, 35.0, 40.0, 45.0]
    recent.add(window(2, stream("s.1", 60)))
    assert [each.start for each in recent.windows] == [10.0]
    recent.add(window(100, stream("s.1", 60)))
    assert len(recent.windows) == 1


def test_a_target_belongs_to_its_smallest_pool() -> None:
    names, pool = pool_numbers(["a", "b", "elsewhere"], Facts(pools={"all": ("a", "b", "c"), "few": ("a",)}))
    assert [names[number] if number >= 0 else "" for number in pool.tolist()] == ["few", "all", ""]
