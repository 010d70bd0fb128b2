"""Array tasks are grouped, and no other jobs."""

from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import small_files, window
from tierd.arrays import FEW_TASKS, ArrayTracker, any_at_work, array_of, group_of, with_arrays
from tierd.detect.profile import Classes

NUMBERS = st.integers(0, 10**7)
TASK_IDS: tuple[Callable[[int, int], str], ...] = (
    lambda array, task: f"{array}_{task}",
    lambda array, task: f"{array}[{task}]",
    lambda array, task: f"{array}[{task}].pbs01.site",
    lambda array, task: f"{array}_{task}.1001",
)
JOB_IDS = st.one_of(
    st.text(max_size=31),
    st.builds(lambda form, array, task: form(array, task), st.sampled_from(TASK_IDS), NUMBERS, NUMBERS),
    st.builds(lambda name, task, user: f"{name}{task}.{user}", st.sampled_from(("task", "run_")), NUMBERS, NUMBERS),
    NUMBERS.map(str),
)
DIRECTORIES = st.sampled_from(("", "/proj/in", "/proj/run/t1", "/proj/run/t2", "/home/u1/a", "[0x200000401:0x1:0x0]"))


@given(st.sampled_from(TASK_IDS), NUMBERS, st.sets(NUMBERS, min_size=2), DIRECTORIES)
def test_tasks_of_an_array_are_one_group_wherever_they_work(
        form: Callable[[int, int], str], array: int, tasks: set[int], directory: str) -> None:
    first, *others = [form(array, task) for task in tasks]
    assert {group_of(first, directory), *map(group_of, others)} == {array_of(first)} != {""}


@given(st.sampled_from(TASK_IDS), NUMBERS, NUMBERS, NUMBERS)
def test_tasks_of_two_arrays_are_never_one_group(
        form: Callable[[int, int], str], first: int, second: int, task: int) -> None:
    assert (array_of(form(first, task)) == array_of(form(second, task))) == (first == second)


@given(NUMBERS, NUMBERS, st.tuples(NUMBERS, NUMBERS))
def test_jobs_of_two_users_are_never_one_group(first: int, second: int, users: tuple[int, int]) -> None:
    one, other = f"task{first}.{users[0]}", f"task{second}.{users[1]}"
    assert (group_of(one, "/proj/in") == group_of(other, "/proj/in")) == (users[0] == users[1])


@given(st.sets(NUMBERS.map(str), min_size=2), DIRECTORIES.filter(bool))
def test_a_job_whose_directory_is_not_known_is_alone(jobs: set[str], directory: str) -> None:
    assert {group_of(job) for job in jobs} == {""}
    assert len({group_of(job, directory) for job in jobs} - {""}) == 1


@pytest.mark.parametrize(("one", "other", "directories"), [
    ("4242", "4243", ("/proj/a", "/proj/b")),
    ("untar.1001", "post.1001", ("/proj/a", "/proj/a")),
    ("untar.1001", "untar.1002", ("/proj/a", "/proj/a")),
    ("1234_1", "1234", ("/proj/a", "/proj/a")),
])
def test_other_jobs_of_a_directory_or_a_user_stay_apart(one: str, other: str, directories: tuple[str, str]) -> None:
    first, second = group_of(one, directories[0]), group_of(other, directories[1])
    assert not first or first != second


def test_directories_that_differ_by_a_number_are_one_only_where_the_user_is_known() -> None:
    assert group_of("1", "/scratch/1") != group_of("2", "/scratch/2")
    assert {group_of(f"t{task}.1001", f"/scratch/{task}") for task in range(4)} == {"t[].1001@/scratch/[]"}
    assert group_of("t1.1001", "/home/p1/in") != group_of("t2.1001", "/home/p2/in")


def tasks_at_work(count: int, first: int = 0) -> list[str]:
    return [f"77_{task}" for task in range(first, first + count)]


def nowhere(_job: str) -> str:
    return ""


def test_a_large_array_is_a_group_until_its_last_tasks() -> None:
    tracker = ArrayTracker()
    assert tracker.update(tasks_at_work(FEW_TASKS), 5.0, 0.0, nowhere) == {}
    assert len(tracker.update(tasks_at_work(FEW_TASKS + 1), 10.0, 0.0, nowhere)["77_[]"]) == 7
    assert len(tracker.update(tasks_at_work(3), 100.0, 0.0, nowhere)["77_[]"]) == 7, "all tasks of the history"
    assert tracker.update(tasks_at_work(1), 200.0, 150.0, nowhere) == {}


def test_tasks_that_follow_each_other_are_one_array() -> None:
    tracker = ArrayTracker()
    for step in range(40):
        found = tracker.update(tasks_at_work(12, first=6 * step), 5.0 * step, 5.0 * step - 60, nowhere)
    assert set(found["77_[]"]) >= {*tasks_at_work(12, first=6 * 39)}
    assert len(found["77_[]"]) < 120, "tasks that ended before the history are forgotten"


@given(st.lists(st.sets(JOB_IDS, max_size=30), max_size=6), DIRECTORIES)
def test_a_tracker_has_no_job_twice_and_none_that_it_never_saw(windows: list[set[str]], directory: str) -> None:
    tracker, seen = ArrayTracker(), set[str]()
    for number, jobs in enumerate(windows):
        seen |= jobs
        found = tracker.update(jobs, 5.0 * number, -1.0, lambda _job: directory)
        members = [job for tasks in found.values() for job in tasks]
        assert len(members) == len(set(members))
        assert set(members) <= seen


def test_directories_are_looked_up_if_many_ids_are_alike() -> None:
    asked: list[str] = []

    def directory_of(job: str) -> str:
        asked.append(job)
        return "/proj/in"

    tracker = ArrayTracker()
    others = ["ior.1002", "4242", *(f"untar.{user}" for user in range(100)), *tasks_at_work(20)]
    assert set(tracker.update(others, 5.0, 0.0, directory_of)) == {"77_[]"}
    assert asked == []
    numbers = [str(number) for number in range(7000, 7020)]
    assert set(tracker.update(numbers, 100.0, 50.0, directory_of)) == {"[]@/proj/in"}
    tracker.update(numbers, 105.0, 50.0, directory_of)
    assert sorted(asked) == numbers, "each job once"


def test_an_array_is_at_work_while_a_task_of_its_name_is() -> None:
    assert any_at_work("a", (), ["a", "b"])
    assert not any_at_work("77_[]", (), ["77_1"]), "a job of this name, not an array"
    assert any_at_work("77_[]", ("77_1",), ["77_1"])
    assert any_at_work("77_[]", ("77_1",), ["77_99"]), "a task that began later"
    assert not any_at_work("77_[]", ("77_1",), ["78_1"])


def test_the_name_of_an_array_is_text_whatever_its_directory_holds() -> None:
    """The journal and metrics cannot have a name that is no UTF-8."""
    assert group_of("4242", "/proj/\udcff").encode() == rb"[]@/proj/\udcff"


def test_tasks_that_have_ended_cost_no_time() -> None:
    """A site with thousands of short tasks has tens of thousands in its history, which took a second of each cycle."""
    tasks = tuple(f"77_{number}" for number in range(100_000))
    seen = window(0, *(small_files(task, 5) for task in tasks[:9]))
    begun = process_time()
    joined = with_arrays(seen, {"77_[]": tasks}, Classes())
    assert joined.jobs == {"77_[]"}
    assert process_time() - begun < 0.3
