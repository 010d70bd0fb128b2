from collections.abc import Sequence
from dataclasses import replace

import pytest

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from lustre.layout.setstripe import setstripe_arguments
from tests.tierd.worlds import TARGETS, noise
from tierd.config.settings import Settings
from tierd.decide.plans import FlashSettings, Plan
from tierd.engine import plan_by_scope, situation_of
from tierd.model import Candidate, Capacity, DirectoryActivity, Finding, OpenFile
from tierd.policies import noisy_neighbour
from tierd.policies.noisy_neighbour import NoisyNeighbourEvidence
from tierd.policies.protocol import Situation
from tierd.refusal import Reason

MIB = 1 << 20
FLASH = ("lustre-OST0000", "lustre-OST0001")
NOISE = noise()
FINDING = Finding("noisy-neighbour", 1000.0, "m.2", "s.1", TARGETS, "…", NOISE, directories=("/proj/in",))
PLAIN = Layout((Component(pool="hdd", stripe_count=1, stripe_size=4 * MIB),), composite=False)
ROOM = Capacity({"flash": FLASH, "hdd": TARGETS}, {"flash": 100 << 30, "hdd": 1 << 40},
                {"flash": 90 << 30, "hdd": 1 << 39}, {"/proj/in": PLAIN})
ACTIVITY = DirectoryActivity("m.2", "/proj/in", creates=100, closes=100, sizes=(MIB,) * 100)
READS = noise(aggressor_read_share=0.5)
SHORT = replace(ROOM, avail_bytes={"flash": (10 << 30) + 400 * MIB, "hdd": 0})


def decide(finding: Finding, evidence: NoisyNeighbourEvidence, activities: Sequence[DirectoryActivity],
           capacity: Capacity, pools: FlashSettings) -> Plan:
    return noisy_neighbour.plan(finding, evidence, Situation(capacity, pools, activities))


def file(number: int, closed_at: float = 900.0, size: int | None = MIB) -> Candidate:
    return Candidate(Fid(1, number), f"/proj/in/f{number}", closed_at, size_bytes=size)


def test_new_files_get_flash_and_files_that_nobody_reads_stay() -> None:
    plan = decide(FINDING, NOISE, [replace(ACTIVITY, candidates=(file(1), file(2)))], ROOM, FlashSettings())
    (action,) = plan.actions
    assert (action.kind, action.directory) == ("set-default-layout", "/proj/in")
    assert " ".join(setstripe_arguments(action.layout)) == "-E 1M -c 1 -p flash -E -1 -c 1 -S 4M -p hdd"
    assert decide(FINDING, NOISE, [replace(ACTIVITY, opens=100)], SHORT, FlashSettings()).actions, "half are new files"


def test_files_the_job_reads_follow_those_known_to_be_read_first_then_the_youngest() -> None:
    read = replace(file(4, 700.0), reads=5.0), replace(file(5, 600.0), reads=50.0)
    activity = replace(ACTIVITY, candidates=(file(1, 800.0), file(2, 900.0), file(3, 995.0), *read))
    plan = decide(FINDING, READS, [activity], ROOM, FlashSettings())
    assert [(a.kind, a.path) for a in plan.actions] == [
        ("set-default-layout", ""), *(("migrate", f"/proj/in/f{n}") for n in (5, 4, 2, 1))]  # f3 was closed just now


def test_moves_stop_at_the_reserve_and_skip_what_does_not_fit_the_component() -> None:
    room = replace(ROOM, avail_bytes={"flash": 13 << 30, "hdd": 0})
    activity = replace(ACTIVITY, sizes=(MIB,) * 100,
                       candidates=tuple(file(n, 900.0 - n, 2 * MIB if n == 0 else MIB) for n in range(4000)))
    plan = decide(FINDING, READS, [activity], room, FlashSettings(max_moves=10_000))
    moves = [a for a in plan.actions if a.kind == "migrate"]
    assert len(moves) == 3 * 1024
    assert all(a.path != "/proj/in/f0" for a in moves)
    few = decide(FINDING, READS, [activity, activity], room, FlashSettings(max_moves=7))
    assert sum(a.kind == "migrate" for a in few.actions) == 7, "over all directories"


@pytest.mark.parametrize(("room", "activity", "reason", "sentence"), [
    (replace(ROOM, pools={"flash": (), "hdd": TARGETS}), ACTIVITY, Reason.NO_POOL, "'flash' does not exist"),
    (replace(ROOM, default_layouts={}), ACTIVITY, Reason.NO_LAYOUT, "default layout could not be read"),
    (SHORT, ACTIVITY, Reason.NO_ROOM, "GB free, and the job fills"),
    (ROOM, replace(ACTIVITY, sizes=(MIB,) * 50 + (30 * MIB,) * 50), Reason.SIZES_MIXED, "would split"),
    (ROOM, replace(ACTIVITY, sizes=(1 << 30,) * 50), Reason.NOT_SMALL, "not small files"),
    (ROOM, replace(ACTIVITY, directory="[0x200000402:0x1:0x0]"), Reason.NO_PATH, "its path is not known"),
    (ROOM, replace(ACTIVITY, directory="/"), Reason.ROOT_DIRECTORY, "keeps its default layout"),
])
def test_refuses_with_a_reason(room: Capacity, activity: DirectoryActivity, reason: Reason, sentence: str) -> None:
    plan = decide(FINDING, NOISE, [activity], room, FlashSettings())
    assert plan.actions == ()
    assert sentence in plan.refusals[0].sentence
    assert plan.refusals[0].reason is reason


def test_no_layout_is_set_where_one_covers_the_files_already_or_the_job_creates_none() -> None:
    for none in (replace(ACTIVITY, creates=0, write_opens=100), replace(ACTIVITY, creates_before=100)):
        assert decide(FINDING, NOISE, [none], ROOM, FlashSettings()).actions == ()
    covering = Layout((Component(0, 4 * MIB, "flash"), Component(4 * MIB, None, "hdd")))
    room = replace(ROOM, default_layouts={"/proj/in": covering})
    assert decide(FINDING, NOISE, [ACTIVITY], room, FlashSettings()).actions == ()


def test_a_component_that_is_too_small_is_replaced() -> None:
    small = Layout((Component(0, 128 << 10, "flash"), Component(128 << 10, None, "hdd", stripe_count=2)))
    room = replace(ROOM, default_layouts={"/proj/in": small})
    (action,) = decide(FINDING, NOISE, [replace(ACTIVITY, outgrown=90)], room, FlashSettings()).actions
    assert action.layout.components[0].extent_end == MIB
    assert action.layout.components[1].stripe_count == 2
    assert "90 files outgrew the present first component" in action.reason


@pytest.mark.parametrize("count", [-1, -2, -32, 0, 3])
def test_large_files_keep_their_stripes(count: int) -> None:
    """Of -2, as ``lfs setstripe -C -2`` sets it, two objects on each target."""
    present = Layout((Component(pool="hdd", stripe_count=count, pattern="raid0,overstriped"),), composite=False)
    room = replace(ROOM, default_layouts={"/proj/in": present})
    (action,) = decide(FINDING, NOISE, [ACTIVITY], room, FlashSettings()).actions
    assert [(part.stripe_count, part.overstriped) for part in action.layout.components] == [(1, False), (count, True)]


def test_one_large_file_is_moved_whole_when_it_is_closed() -> None:
    evidence = noise(aggressor_bytes_per_file=0.0)
    fid = Fid(1, 7)
    activity = DirectoryActivity("m.2", "/proj/in", opens=1, existing_files=(OpenFile(fid, "/proj/in/table"),))
    opened = decide(FINDING, evidence, [activity], ROOM, FlashSettings())
    assert (opened.actions, [refusal.reason for refusal in opened.refusals]) == ((), [Reason.IN_USE])
    closed = replace(activity, candidates=(Candidate(fid, "/proj/in/table", 900.0, size_bytes=128 * MIB),))
    (move,) = decide(FINDING, evidence, [closed], ROOM, FlashSettings()).actions
    (component,) = move.layout.components
    assert (move.kind, component.pool, component.extent_end) == ("migrate", "flash", None)
    huge = replace(activity, candidates=(Candidate(fid, "/proj/in/table", 900.0, size_bytes=1 << 40),))
    full = replace(ROOM, avail_bytes={**ROOM.avail_bytes, "flash": 0})
    for plan in (decide(FINDING, evidence, [huge], ROOM, FlashSettings()),
                 decide(FINDING, evidence, [activity], full, FlashSettings())):
        assert plan.actions == (), "no advice to move it where there is no room"
        assert [refusal.reason for refusal in plan.refusals] == [Reason.NO_ROOM]


def test_without_changelogs_the_plan_is_refused_with_the_reason() -> None:
    plan = plan_by_scope(replace(FINDING, directories=()), [], situation_of(Settings(), ROOM),
                         Settings().resolved_scopes)
    assert plan.actions == ()
    assert [refusal.reason for refusal in plan.refusals] == [Reason.NO_CHANGELOG]
    assert str(plan.refusals[0]).startswith("m.2: no changelog shows where it works (does each metadata target ")


def test_advice_is_never_acted_on() -> None:
    situation, scopes = situation_of(Settings(), ROOM), Settings().resolved_scopes
    assert plan_by_scope(FINDING, [ACTIVITY], situation, scopes).actions
    assert plan_by_scope(replace(FINDING, advice_only=True), [ACTIVITY], situation, scopes).actions == ()
