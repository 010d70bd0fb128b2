from dataclasses import replace

from tests.tierd.worlds import noise
from tierd.detect.attribution import (
    MAX_DIRECTORIES,
    activities_of_finding,
    activities_of_jobs,
    directories,
    directories_of,
)
from tierd.model import DirectoryActivity, Finding


def busy(place: str, creates: int) -> DirectoryActivity:
    return DirectoryActivity("m.2", place, creates=creates)


def test_where_a_job_works_now_is_not_hidden_by_where_it_did_for_months() -> None:
    before, now = busy("/before", 1_000_000), replace(busy("/now", 300), lately=300)
    assert directories([before, now]) == ("/now",)
    assert directories([before, replace(now, lately=0)]) == ("/before",), "as one that holds its files open for long"


def test_of_very_many_directories_the_busiest_are_named_and_their_parent() -> None:
    """Existing ones get nothing from a default of the parent; new ones do."""
    named = directories([busy(f"/proj/run/d{n}", 1000 - n) for n in range(600)])
    assert named == (*(f"/proj/run/d{n}" for n in range(MAX_DIRECTORIES)), "/proj/run")


def test_activities_below_a_parent_are_summed() -> None:
    parts = [replace(busy(f"/proj/run/d{n}", 3), last_time=40.0 * n) for n in range(100)]
    finding = Finding("noisy-neighbour", 0, "m.2", "s.1", (), "", noise(), directories(parts))
    (whole,) = activities_of_finding(finding, parts)
    assert (whole.directory, whole.creates) == ("/proj/run", 300)
    assert activities_of_finding(finding, [whole]) == (whole,)


def test_the_root_is_never_named() -> None:
    assert "/" not in directories([busy(f"/d{n}", 3) for n in range(600)])
    assert directories([replace(busy(f"/d{n}", 3), last_time=40.0 * n) for n in range(100)]) == ()


def test_each_directory_is_named_if_a_job_stays_in_dozens() -> None:
    places = [replace(busy(f"/proj/run/d{n:02d}", 30), lately=30, last_time=100.0 + n) for n in range(20)]
    assert directories(places) == tuple(f"/proj/run/d{n:02d}" for n in range(20))
    assert directories([*places, replace(busy("/home/x", 2), lately=2, last_time=100.0)])[-1] == "/proj/run/d19"


def test_the_parent_is_named_if_a_job_makes_a_directory_for_each_step() -> None:
    assert directories([replace(busy(f"/proj/run/d{n:02d}", 30), lately=30, last_time=10.0 * n)
                        for n in range(20)]) == ("/proj/run",)


def test_a_directory_without_a_path_is_not_named() -> None:
    assert directories([busy("", 30), busy("/a", 10)]) == ("/a",)
    assert directories([busy("", 30)]) == directories([]) == ()


def now_in(*activities: DirectoryActivity, small_files: bool = True) -> tuple[str, ...]:
    """Directories of a noisy neighbour at 1000 s, with the same activities for any time."""
    evidence = noise() if small_files else noise(aggressor_bytes_per_file=0.0)
    finding = Finding("noisy-neighbour", 1000.0, "m.2", "s.1", (), "", evidence)
    return directories_of(finding, lambda _job, _since: activities, 100.0, now=True)


def test_a_directory_of_an_earlier_run_is_not_named() -> None:
    """Though it has had most of the work of the last minutes."""
    before = replace(busy("/before", 90_000), lately=90_000, last_time=930.0)
    assert now_in(before, replace(busy("/now", 300), lately=300, last_time=999.0)) == ("/now",)
    assert now_in(before) == ()


def test_the_parent_of_the_steps_of_a_run_is_named_while_a_step_is_at_work() -> None:
    steps = [replace(busy(f"/run/d{n:02d}", 30), lately=30, last_time=800.0 + 10 * n) for n in range(20)]
    assert now_in(*steps) == ("/run",)
    assert now_in(*steps[:10]) == ()


def test_a_neighbour_within_large_files_works_where_it_has_them_open() -> None:
    """The table returns such a directory for any time."""
    assert now_in(replace(busy("/open", 3), last_time=200.0), small_files=False) == ("/open",)
    assert now_in(replace(busy("/open", 3), last_time=200.0)) == ()


def test_tasks_of_an_array_are_counted_together_directory_by_directory() -> None:
    known = {
        "77_1": [DirectoryActivity("77_1", "/a", 3, lately=2, last_time=7.0, clients=("a",)),
                 DirectoryActivity("77_1", "/b", 1)],
        "77_2": [DirectoryActivity("77_2", "/a", 4, lately=1, last_time=9.0, clients=("b", "a"), write_opens=2)],
    }
    together, other = activities_of_jobs(lambda job, _since: known[job], ("77_1", "77_2"), "77_[]", 0.0)
    assert (together.job, together.directory, together.creates) == ("77_[]", "/a", 7)
    assert (together.lately, together.last_time) == (3, 9.0)
    assert (together.clients, together.write_opens) == (("a", "b"), 2), "several nodes, as hints for MPI-IO need"
    assert other.directory == "/b"
    assert activities_of_jobs(lambda job, _since: known[job], ("77_2",), "77_2", 0.0) == known["77_2"]
