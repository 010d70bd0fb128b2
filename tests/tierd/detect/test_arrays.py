"""Tasks of arrays are grouped, and nobody else is."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierd.detect.arrays import array_of, group_of, groups

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


@given(st.dictionaries(JOB_IDS, DIRECTORIES))
def test_each_job_is_in_one_group_at_most_and_groups_have_two_or_more(known: dict[str, str]) -> None:
    found = groups(known, known)
    members = [job for each in found.values() for job in each]
    assert len(members) == len(set(members))
    assert set(members) <= set(known)
    assert all(len(each) >= 2 for each in found.values())


@given(st.lists(JOB_IDS), st.randoms(use_true_random=False))
def test_the_order_of_jobs_does_not_matter(jobs: list[str], chance: Random) -> None:
    shuffled = list(jobs)
    chance.shuffle(shuffled)
    places = dict.fromkeys(jobs, "/proj/in")
    assert groups(jobs, places) == groups(shuffled, places)


@given(st.sampled_from(TASK_IDS), NUMBERS, st.sets(NUMBERS, min_size=2), DIRECTORIES)
def test_tasks_of_an_array_are_one_group_wherever_they_work(
    form: Callable[[int, int], str], array: int, tasks: set[int], directory: str
) -> None:
    jobs = [form(array, task) for task in tasks]
    (found,) = groups(jobs, {jobs[0]: directory}).values()
    assert set(found) == set(jobs)


@given(st.sampled_from(TASK_IDS), NUMBERS, NUMBERS, NUMBERS)
def test_tasks_of_two_arrays_are_never_one_group(
    form: Callable[[int, int], str], first: int, second: int, task: int
) -> None:
    assert (array_of(form(first, task)) == array_of(form(second, task))) == (first == second)


@given(NUMBERS, NUMBERS, st.tuples(NUMBERS, NUMBERS))
def test_jobs_of_two_users_are_never_one_group(first: int, second: int, users: tuple[int, int]) -> None:
    one, other = f"task{first}.{users[0]}", f"task{second}.{users[1]}"
    assert (group_of(one, "/proj/in") == group_of(other, "/proj/in")) == (users[0] == users[1])


@given(st.sets(NUMBERS.map(str), min_size=2), DIRECTORIES.filter(bool))
def test_a_job_whose_directory_is_not_known_is_alone(jobs: set[str], directory: str) -> None:
    assert groups(jobs, {}) == {}
    assert groups(jobs, {min(jobs): directory}) == {}
    assert [set(each) for each in groups(jobs, dict.fromkeys(jobs, directory)).values()] == [jobs]


@pytest.mark.parametrize(("one", "other", "directories"), [
    ("4242", "4243", ("/proj/a", "/proj/b")),
    ("untar.1001", "post.1001", ("/proj/a", "/proj/a")),
    ("untar.1001", "untar.1002", ("/proj/a", "/proj/a")),
    ("1234_1", "1234", ("/proj/a", "/proj/a")),
])
def test_other_jobs_of_a_directory_or_a_user_stay_apart(one: str, other: str, directories: tuple[str, str]) -> None:
    assert groups([one, other], {one: directories[0], other: directories[1]}) == {}
