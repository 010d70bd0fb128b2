"""Whole files with random I/O go to flash once closed: worth, room, and files that stay."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, explain
from tierd.decide.plans import FlashSettings, Plan
from tierd.model import Candidate, Capacity, DirectoryActivity, Finding, OpenFile
from tierd.policies import small_random_io
from tierd.policies.protocol import Situation, Tables
from tierd.policies.small_random_io import RandomIoToFlash, SmallRandomIoEvidence
from tierd.refusal import Reason

MIB, GB, NOW = 1 << 20, 10**9, 1e9
POOLS = {"flash": ("l-OST0000", "l-OST0005"), "hdd": ("l-OST0001", "l-OST0002")}
ROOM = Capacity(POOLS, {"flash": 100 * GB, "hdd": 1000 * GB}, {"flash": 50 * GB, "hdd": 500 * GB}, {"/d": None})
EVIDENCE = SmallRandomIoEvidence(rpcs_per_second=100.0, busiest_target_rpcs_per_second=50.0, small_rpc_share=1.0,
                                 mean_rpc_bytes=4096.0, operations_per_mib=256.0, read_share=0.2, seconds=600.0)
FOUND = Finding("small-random-io", NOW, "db.4", "", ("l-OST0001",), "", EVIDENCE, ("/d",))


def table(number: int = 1, size: int | None = 128 * MIB, closed: float = NOW - 100, created: float = 0.0,
          opens: int = 1) -> Candidate:
    return Candidate(Fid(0x200000401, number, 0), f"/d/t{number}", closed, created, size, opens)


def planned(*files: Candidate, room: Capacity = ROOM, evidence: SmallRandomIoEvidence = EVIDENCE, creates: int = 9,
            opened: tuple[OpenFile, ...] = (), settings: RandomIoToFlash = RandomIoToFlash()) -> Plan:  # noqa: B008
    activity = DirectoryActivity("db.4", "/d", creates, candidates=files, existing_files=opened)
    return small_random_io.plan(replace(FOUND, evidence=evidence), evidence, Situation(
        room, FlashSettings(), [activity], Tables({"random_io_to_flash": settings})))


def test_a_closed_file_goes_to_flash_as_a_whole() -> None:
    (action,) = planned(table()).actions
    assert (action.kind, action.path, action.size_bytes) == ("migrate", "/d/t1", 128 * MIB)
    assert action.layout == Layout((Component(0, None, "flash", 2),), composite=False)


def test_an_open_file_waits() -> None:
    plan = planned(opened=(OpenFile(Fid(1, 1), "/d/t1"),))
    assert (plan.actions, [refusal.reason for refusal in plan.refusals]) == ((), [Reason.IN_USE])


@pytest.mark.parametrize("file", [
    table(closed=NOW - 5), table(size=None), table(size=MIB), table(size=300 << 30),
    table(created=NOW - 500, opens=0),
], ids=["closed just now", "unknown size", "small", "too large", "never opened again"])
def test_files_that_stay(file: Candidate) -> None:
    assert not any(action.kind == "migrate" for action in planned(file).actions)


def test_a_file_must_save_more_than_its_copy_costs() -> None:
    gain = 100 * 600 * 0.0075  # seconds of disk time
    fits, over = int(gain / 3 / 2 * 100e6) - MIB, int(gain / 3 / 2 * 100e6) + MIB
    assert planned(table(size=fits)).actions
    assert [refusal.reason for refusal in planned(table(size=over)).refusals] == [Reason.NOT_WORTH]
    assert not planned(table(), evidence=replace(EVIDENCE, seconds=0.0)).actions


@pytest.mark.parametrize(("room", "reason"), [
    (replace(ROOM, avail_bytes={"flash": 10 * GB + 200 * MIB, "hdd": 0}), Reason.NO_ROOM),
    (replace(ROOM, avail_bytes={"flash": 0, "hdd": 0}), Reason.NO_ROOM),
    (replace(ROOM, pools={"hdd": POOLS["hdd"]}), Reason.NO_POOL),
    (replace(ROOM, pools={**POOLS, "flash": ()}), Reason.NO_POOL),
])
def test_flash_must_have_room(room: Capacity, reason: Reason) -> None:
    plan = planned(table(), room=room)
    assert plan.actions == ()
    assert [refusal.reason for refusal in plan.refusals] == [reason]


def test_a_job_that_makes_its_files_gets_a_default_layout() -> None:
    made = table(created=NOW - 500, opens=0)
    (action,) = planned(made).actions
    assert (action.kind, action.directory) == ("set-default-layout", "/d")
    assert explain(action.layout) == "first 128M on flash (2 stripes), rest on hdd (default stripes)"
    (small,) = planned(*(table(number, 3 * MIB, created=NOW - 500, opens=0) for number in range(9))).actions
    assert explain(small.layout) == "first 4M on flash (1 stripe), rest on hdd (default stripes)"
    assert planned(made, room=replace(ROOM, default_layouts={"/d": action.layout})).actions == ()
    assert planned(made, room=replace(ROOM, default_layouts={})).actions == ()
    assert planned(made, creates=0).actions == (), "another job made it"


@given(st.lists(st.tuples(st.integers(1, 400 << 30), st.booleans(), st.integers(0, 3)), max_size=30),
       st.integers(0, 100 * GB), st.floats(0, 1e4))
def test_a_plan_fits_and_pays(files: list[tuple[int, bool, int]], free: int, rate: float) -> None:
    evidence = replace(EVIDENCE, rpcs_per_second=rate)
    plan = planned(*(table(n, size, created=NOW - 500 if made else 0.0, opens=opens)
                     for n, (size, made, opens) in enumerate(files)),
                   room=replace(ROOM, avail_bytes={"flash": free, "hdd": 0}), evidence=evidence,
                   settings=RandomIoToFlash(max_moves=5))
    moved = [action for action in plan.actions if action.kind == "migrate"]
    assert sum(action.size_bytes for action in moved) <= max(0, free - 10 * GB) / 2
    assert len(moved) <= 5
    assert sum(3 * 2 * action.size_bytes / 100e6 for action in moved) <= rate * 600 * 0.0075 + 1e-6
