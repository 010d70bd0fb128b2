"""Stripes of shared files, of streams and of small files: the arithmetic, what is rewritten, and what stays."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, explain
from lustre.layout.setstripe import setstripe_arguments
from tierd.decide.plans import FlashSettings, Plan
from tierd.decide.restripe import Restripe
from tierd.model import Candidate, Capacity, DirectoryActivity, Finding, OpenFile, TargetFill
from tierd.policies import shared_file_contention, striping
from tierd.policies.protocol import Situation, Tables
from tierd.policies.shared_file_contention import ContentionEvidence
from tierd.policies.striping import StripingEvidence
from tierd.refusal import Reason

MIB, GIB, GB, NOW = 1 << 20, 1 << 30, 10**9, 1e9
HDD = tuple(f"l-OST{n:04x}" for n in range(2, 10))
POOLS = {"flash": ("l-OST0000", "l-OST0001"), "hdd": HDD}
PLAIN = Layout((Component(0, None, "hdd", 1),), composite=False)
ROOM = Capacity(POOLS, {"flash": 100 * GB, "hdd": 1000 * GB}, {"flash": 50 * GB, "hdd": 500 * GB}, {"/d": PLAIN},
                release=(2, 13))
SHARED = ContentionEvidence(openers=6, objects=1, targets_available=8, wanted_objects=6, bytes_per_second=200e6,
                            record_bytes=1 << 20, seconds=600.0)
STREAM = StripingEvidence(target_share=0.99, bytes_per_second=80e6, targets_available=8, record_bytes=4 << 20,
                          seconds=1200.0)


def file(size: int | None = GIB, created: float = 0.0, opens: int = 1, closed: float = NOW - 100,
         name: str = "one") -> Candidate:
    return Candidate(Fid(0x200000401, 7, 0), f"/d/{name}", closed, created, size, opens)


def shared(*files: Candidate, room: Capacity = ROOM, evidence: ContentionEvidence = SHARED, creates: int = 0,
           settings: Restripe = Restripe(), opened: tuple[OpenFile, ...] = ()) -> Plan:  # noqa: B008
    found = Finding("shared-file-contention", NOW, "mpi.5", "", HDD[:1], "", evidence, ("/d",), subject="/d/one")
    activity = DirectoryActivity("mpi.5", "/d", creates=creates, candidates=files, existing_files=opened)
    return shared_file_contention.plan(found, evidence, Situation(room, FlashSettings(), [activity],
                                                                  Tables({"restripe": settings})))


def stream(*files: Candidate, room: Capacity = ROOM, creates: int = 0, evidence: StripingEvidence = STREAM) -> Plan:
    found = Finding("striping", NOW, "ior.6", "", HDD[:1], "", evidence, ("/d",), subject="stream of ior.6")
    activity = DirectoryActivity("ior.6", "/d", creates=creates, candidates=files)
    return striping.plan(found, evidence, Situation(room, FlashSettings(), [activity]))


def small(present: Layout | None, room: Capacity = ROOM) -> Plan:
    evidence = StripingEvidence(stripe_count=4, files_created=500)
    found = Finding("striping", NOW, "mk.7", "", (), "", evidence, ("/d",), subject="small files in /d")
    activity = DirectoryActivity("mk.7", "/d", creates=500, sizes=(5000,) * 30)
    return striping.plan(found, evidence, Situation(replace(room, default_layouts={"/d": present}), FlashSettings(),
                                                    [activity]))


def test_a_closed_shared_file_gets_a_stripe_for_each_process() -> None:
    (action,) = shared(file()).actions
    assert (action.kind, action.path, "a file on 1 object;" in action.reason) == ("migrate", "/d/one", True)
    assert " ".join(setstripe_arguments(action.layout)) == "-c 6 -S 1M -p hdd"


def test_beyond_the_targets_it_is_overstriped_where_the_release_knows_it() -> None:
    many = replace(SHARED, openers=40, wanted_objects=32, objects=8)
    (action,) = shared(file(), evidence=many).actions
    assert " ".join(setstripe_arguments(action.layout)) == "-C 32 -S 1M -p hdd"
    for plan in (shared(file(), evidence=many, room=replace(ROOM, release=(2, 12))),
                 shared(file(), evidence=many, settings=Restripe(overstripe=False))):
        assert plan.actions == ()
        assert [refusal.reason for refusal in plan.refusals] == [Reason.NOTHING_TO_DO]
    few = replace(many, objects=2)
    (plain,) = shared(file(), evidence=few, room=replace(ROOM, release=(2, 12))).actions
    assert " ".join(setstripe_arguments(plain.layout)) == "-c 8 -S 1M -p hdd"


@pytest.mark.parametrize("candidate", [
    file(size=None), file(size=MIB), file(size=33 << 30), file(created=NOW - 50, opens=0), file(closed=NOW - 3),
    file(name="other"),
], ids=["unknown size", "small", "too large", "made and never used again", "closed just now", "another file"])
def test_files_that_are_not_rewritten(candidate: Candidate) -> None:
    assert shared(candidate).actions == ()


def test_a_file_must_have_been_closed_for_the_time_of_a_copy() -> None:
    assert shared(file(closed=NOW - 10)).actions == (), "a copy of a GiB takes 10.7 s at 100 MB/s"
    assert shared(file(closed=NOW - 11)).actions
    slower = replace(SHARED, bytes_per_second=1e6, seconds=30_000.0)
    assert shared(file(closed=NOW - 59), evidence=slower).actions == ()
    assert shared(file(closed=NOW - 61), evidence=slower).actions


def test_a_copy_must_pay_and_fit() -> None:
    opened = shared(opened=(OpenFile(Fid(1, 1), "/d/one"),))
    assert (opened.actions, [r.reason for r in opened.refusals]) == ((), [Reason.IN_USE]), "it waits"
    assert [r.reason for r in shared(file(30 * GB)).refusals] == [Reason.NOT_WORTH]
    assert [r.reason for r in shared(file(), evidence=replace(SHARED, seconds=10.0)).refusals] == [Reason.NOT_WORTH]
    full = replace(ROOM, avail_bytes={"flash": 0, "hdd": 100 * GB + MIB})
    assert [r.reason for r in shared(file(), room=full).refusals] == [Reason.NO_ROOM]
    tight = replace(full, avail_bytes={"flash": 0, "hdd": 102 * GB})
    assert len(stream(file(name="a"), file(name="b"), room=tight).actions) == 1
    nearly = {target: TargetFill(100 * GB, 10 * GB + (10 * MIB if target == HDD[3] else GB)) for target in HDD}
    assert shared(file(), room=replace(ROOM, fill=nearly)).actions, "seven targets have room for six stripes"
    nearly |= dict.fromkeys(HDD[3:6], nearly[HDD[3]])
    assert [r.reason for r in shared(file(), room=replace(ROOM, fill=nearly)).refusals] == [Reason.NO_ROOM]
    gone = replace(ROOM, pools={"flash": POOLS["flash"], "hdd": ()})
    assert [r.reason for r in shared(file(), room=gone).refusals] == [Reason.NO_POOL]


@pytest.mark.parametrize("present", [
    Layout((Component(0, MIB, "hdd"), Component(MIB, GIB, "hdd", 2), Component(GIB, None, "hdd", 4))),
    Layout((Component(0, None, "hdd", 16),), composite=False),
    Layout((Component(0, None, "hdd", -1),), composite=False),
    Layout((Component(0, MIB, "flash"), Component(MIB, None, "hdd", 8))),
    Layout((Component(0, GIB, "hdd"), Component(GIB, None, "hdd", 0, flags=("extension",), extension_size=GIB))),
    Layout((Component(0, None, "hdd"), Component(0, None, "hdd")), mirror_count=2),
    Layout((Component(0, None, pattern="mdt"),)),
], ids=["of a person", "wide", "all targets", "wide tail", "self-extending", "mirrored", "on the MDT"])
def test_defaults_that_stay(present: Layout) -> None:
    assert shared(creates=1, room=replace(ROOM, default_layouts={"/d": present})).actions == ()


def test_a_flash_component_keeps_its_place() -> None:
    present = Layout((Component(0, MIB, "flash"), Component(MIB, None, "hdd", 1)))
    (action,) = shared(creates=1, room=replace(ROOM, default_layouts={"/d": present})).actions
    assert explain(action.layout) == "first 1M on flash (1 stripe), rest on hdd (6 stripes of 1M)"


def test_a_stream_gets_two_to_eight_stripes() -> None:
    default, move = stream(file(16 * GIB, name="big"), creates=1, evidence=replace(STREAM, seconds=12_000.0)).actions
    assert " ".join(setstripe_arguments(move.layout)) == "-c 5 -S 4M -p hdd"
    assert " ".join(setstripe_arguments(default.layout)) == "-E 4M -c 1 -p hdd -E -1 -c 5 -S 4M -p hdd"
    lonely = replace(ROOM, pools={**POOLS, "hdd": HDD[:1]})
    assert [r.reason for r in stream(file(), room=lonely).refusals] == [Reason.NO_POOL]


def test_small_files_get_one_stripe_and_large_ones_beside_them_keep_theirs() -> None:
    wide = Layout((Component(0, None, "hdd", 4, MIB),), composite=False)
    (default,) = small(wide).actions
    assert explain(default.layout) == "first 4M on hdd (1 stripe), rest on hdd (4 stripes of 1M)"
    every = Layout((Component(0, None, "", -1),), composite=False)
    assert explain(small(every).actions[0].layout) == "first 4M on hdd (1 stripe), rest on hdd (stripes on every OST)"


def test_no_default_names_a_pool_that_does_not_exist() -> None:
    plan = small(Layout((Component(0, None, "", 4),), composite=False), room=replace(ROOM, pools={}))
    assert (plan.actions, [r.reason for r in plan.refusals]) == ((), [Reason.NO_POOL])


@pytest.mark.parametrize("present", [
    None, PLAIN, Layout((Component(0, MIB, "hdd", 4), Component(MIB, None, "hdd", 4))),
])
def test_small_files_without_a_wide_plain_default_stay(present: Layout | None) -> None:
    assert small(present).actions == ()


@given(st.integers(1, 10**5), st.integers(1, 10**4), st.integers(0, 500), st.integers(1, 10**5), st.booleans())
def test_no_file_gets_more_objects_than_processes_or_targets_allow(openers: int, objects: int, targets: int,
                                                                   wanted: int, overstripe: bool) -> None:
    evidence = replace(SHARED, openers=openers, objects=objects, wanted_objects=wanted)
    found = shared_file_contention.shared_stripes(evidence, "hdd", targets, overstripe=overstripe)
    if found is None:
        assert targets < 1 or min(openers, wanted, *([] if overstripe else [targets])) <= objects
    else:
        assert objects < found.stripe_count <= min(openers, wanted)
        assert found.overstriped == (found.stripe_count > targets)
        assert overstripe or found.stripe_count <= targets
