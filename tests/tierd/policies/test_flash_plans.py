"""Plans for outgrown components, hot small files and cold files on flash."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from lustre.layout.setstripe import setstripe_arguments
from lustre.layout.xattr import from_xattr, to_bytes
from tierd.config.act import Mode
from tierd.config.scopes import Scope
from tierd.config.settings import Settings
from tierd.decide.plans import FlashSettings as Pools
from tierd.decide.plans import Plan
from tierd.engine import plan_by_scope, situation_of
from tierd.model import Candidate, Capacity, DirectoryActivity, Facts, Finding, OpenFile, StoredFile
from tierd.policies import cold_on_flash, hot_small_files, outgrown_component
from tierd.policies.cold_on_flash import ColdOnFlashEvidence, ColdToDisk
from tierd.policies.hot_small_files import HotFilesToFlash, HotSmallFilesEvidence
from tierd.policies.outgrown_component import OutgrownComponentEvidence
from tierd.policies.protocol import Situation, Tables
from tierd.refusal import Reason

KIB, MIB, GB, DAY = 1 << 10, 1 << 20, 10**9, 86_400.0
NOW = 1e9
POOLS = {"flash": ("l-OST0000",), "hdd": ("l-OST0001", "l-OST0002")}
TOO_SMALL = Layout((Component(0, 128 * KIB, "flash"), Component(128 * KIB, None, "hdd", 2, 4 * MIB)))


def room(flash_free: float = 50 * GB, hdd_free: float = 500 * GB, layout: Layout | None = TOO_SMALL) -> Capacity:
    return Capacity(POOLS, {"flash": 100 * GB, "hdd": 1000 * GB}, {"flash": int(flash_free), "hdd": int(hdd_free)},
                {"/d": layout})


TOO_LARGE = OutgrownComponentEvidence(
    files_outgrown=500, files_created=1000, share=0.5, component_bytes=128 * KIB, seconds=100.0)
OUTGROWN = Finding("outgrown-component", NOW, "m.2", "", (), "", TOO_LARGE, ("/d",), subject="/d")


def larger(sizes: tuple[int, ...] = (900 * KIB,) * 50, where: Capacity | None = None) -> Plan:
    return outgrown_component.plan(OUTGROWN, TOO_LARGE, Situation(
        where or room(), Pools(), [DirectoryActivity("m.2", "/d", sizes=sizes)]))


def reasons(plan: Plan) -> list[Reason]:
    assert plan.actions == ()
    return [refusal.reason for refusal in plan.refusals]


def test_the_component_grows_to_hold_the_files_and_the_tail_stays() -> None:
    (action,) = larger().actions
    assert (action.kind, action.directory) == ("set-default-layout", "/d")
    assert action.layout == Layout((Component(0, MIB, "flash"), Component(MIB, None, "hdd", 2, 4 * MIB)))
    assert "first component of 128K: 100% of 50 sampled files fit in 1 MiB; the largest" in action.reason


@pytest.mark.parametrize("end", [256 * KIB, MIB, 8 * MIB])
def test_what_lies_behind_the_component_keeps_its_extents_and_stripes(end: int) -> None:
    progressive = Layout((Component(0, 128 * KIB, "flash"), Component(128 * KIB, 4 * MIB, "hdd"),
                          Component(4 * MIB, None, "hdd", -1)))
    (action,) = larger((end,) * 50, room(layout=progressive)).actions
    middle = [Component(end, 4 * MIB, "hdd")] if end < 4 * MIB else []
    assert action.layout == Layout((Component(0, end, "flash"), *middle, Component(max(end, 4 * MIB), None, "hdd", -1)))


def test_a_default_stays_overstriped_behind_the_component() -> None:
    wide = Component(128 * KIB, None, "hdd", 64, 4 * MIB, pattern="raid0,overstriped")
    (action,) = larger(where=room(layout=Layout((TOO_SMALL.components[0], wide)))).actions
    assert action.layout.components[1:] == (replace(wide, extent_start=MIB),)


def test_a_default_goes_on_extending_itself_behind_the_component() -> None:
    """As ``lfs setstripe -E 1M -p flash -E 1G -z 64M -p hdd -E -1 -z 256M -p hdd`` stores it."""
    def extending(start: int, ended: int, end: int | None, size: int) -> tuple[Component, Component]:
        return Component(start, ended, "hdd", 2, 4 * MIB), Component(
            start, end, "hdd", 2, 4 * MIB, flags=("extension",), extension_size=size)

    tail = extending(1024 * MIB, 1024 * MIB, None, 256 * MIB)
    present = Layout((TOO_SMALL.components[0], *extending(128 * KIB, 128 * KIB, 1024 * MIB, 64 * MIB), *tail))
    (action,) = larger(where=room(layout=present)).actions
    assert action.layout.components[1:] == (*extending(MIB, MIB, 1024 * MIB, 64 * MIB), *tail)
    assert from_xattr(to_bytes(action.layout)).components[1].extent_end == MIB
    assert " ".join(setstripe_arguments(action.layout)) == (
        "-E 1M -c 1 -p flash -E 1G -c 2 -S 4M -z 64M -p hdd -E -1 -c 2 -S 4M -z 256M -p hdd")


@pytest.mark.parametrize(("layout", "reason"), [
    (None, Reason.NO_LAYOUT),
    (Layout((Component(0, 64 * KIB, pattern="mdt"), Component(64 * KIB, None, "hdd"))), Reason.OTHER_LAYOUT),
    (Layout((Component(0, 64 * KIB, "flash", pattern="mdt"), Component(64 * KIB, None, "hdd"))), Reason.OTHER_LAYOUT),
    (Layout((Component(0, MIB, "flash"), Component(MIB, 64 * MIB, "flash", 4), Component(64 * MIB, None, "hdd", -1))),
     Reason.OTHER_LAYOUT)])
def test_layouts_of_persons_or_on_mdts_are_left_alone(layout: Layout | None, reason: Reason) -> None:
    refusals = larger(where=room(layout=layout)).refusals  # data-on-mdt sets some of these layouts
    assert [(each.reason, "a person" in each.sentence) for each in refusals] == [(reason, False)]


@pytest.mark.parametrize(("plan", "refused"), [
    pytest.param(larger((100 * KIB,) * 50), [], id="a component that holds them"),
    pytest.param(larger((300 * MIB,) * 50), [Reason.NOT_SMALL], id="large files"),
    pytest.param(larger(()), [Reason.SIZES_UNKNOWN], id="unknown sizes"),
    pytest.param(larger(where=room(flash_free=10.1 * GB)), [Reason.NO_ROOM], id="short flash"),
    pytest.param(larger(where=replace(room(), pools={"hdd": ("x",)})), [Reason.NO_POOL], id="no pool"),
])
def test_the_component_stays(plan: Plan, refused: list[Reason]) -> None:
    assert reasons(plan) == refused


READ_AGAIN = HotSmallFilesEvidence(
    opens_per_second=20.0, disk_reads_per_second=20.0, read_bytes_per_open=64.0 * KIB, disk_read_share=1.0,
    read_operations_share=1.0, usec_per_rpc=9000.0)
HOT = Finding("hot-small-files", NOW, "py.3", "", (), "", READ_AGAIN, ("/d",))


def candidate(number: int, size: int = 64 * KIB, opens: int = 10, closed: float = NOW - 100) -> Candidate:
    return Candidate(Fid(0x200000401, number, 0), f"/d/f{number:03d}", closed, size_bytes=size, opens=opens)


def hot(*candidates: Candidate, where: Capacity | None = None, evidence: HotSmallFilesEvidence = READ_AGAIN,
        **settings: float) -> Plan:
    activity = DirectoryActivity("py.3", "/d", candidates=candidates,
                                 sizes=tuple(c.size_bytes or 0 for c in candidates) * 10)
    tables = Tables({"hot_files_to_flash": HotFilesToFlash(**settings)})  # type: ignore[arg-type]
    return hot_small_files.plan(HOT, evidence, Situation(where or room(layout=None), Pools(), [activity], tables))


def test_files_that_save_most_for_each_byte_go_first() -> None:
    plan = hot(candidate(1, 64 * KIB, 5), candidate(2, 64 * KIB, 50), candidate(3, 128 * KIB, 50))
    assert [a.path for a in plan.actions] == ["/d/f002", "/d/f003", "/d/f001"]
    assert plan.actions[0].layout.components[0] == Component(0, 128 * KIB, "flash")
    assert plan.actions[0].reason.startswith("py.3 reads the file again and again; within 60 minutes the move saves ")


def test_a_directory_that_still_grows_gets_a_default_first() -> None:
    activity = DirectoryActivity("py.3", "/d", creates=5, candidates=tuple(candidate(n) for n in range(20)),
                                 sizes=(64 * KIB,) * 20)
    plan = hot_small_files.plan(HOT, READ_AGAIN, Situation(room(layout=None), Pools(), [activity]))
    assert [a.kind for a in plan.actions] == ["set-default-layout"] + ["migrate"] * 20
    covered = hot_small_files.plan(HOT, READ_AGAIN, Situation(room(), Pools(), [activity]))
    assert {a.kind for a in covered.actions} == {"migrate"}


@pytest.mark.parametrize(("end", "kinds"), [(64 * MIB, {"migrate"}), (512 * KIB, {"set-default-layout", "migrate"})])
def test_a_default_with_small_files_partly_on_the_mdt_and_the_rest_on_flash_stays(end: int, kinds: set[str]) -> None:
    """Another default would send what is beyond the small files, now on flash, to disks."""
    present = Layout((Component(0, 64 * KIB, pattern="mdt"), Component(64 * KIB, end, "flash"),
                      Component(end, None, "hdd", 4)))
    activity = DirectoryActivity("py.3", "/d", creates=5, candidates=tuple(candidate(n) for n in range(20)),
                                 sizes=(900 * KIB,) * 50)
    plan = hot_small_files.plan(HOT, READ_AGAIN, Situation(room(layout=present), Pools(), [activity]))
    assert {a.kind for a in plan.actions} == kinds


def test_the_root_keeps_its_default_layout() -> None:
    activity = DirectoryActivity("py.3", "/", creates=5, candidates=tuple(candidate(n) for n in range(20)),
                                 sizes=(900 * KIB,) * 50)
    where = replace(room(), default_layouts={"/": TOO_SMALL})
    plan = hot_small_files.plan(HOT, READ_AGAIN, Situation(where, Pools(), [activity]))
    assert {a.kind for a in plan.actions} == {"migrate"}
    assert reasons(outgrown_component.plan(OUTGROWN, TOO_LARGE, Situation(
        where, Pools(), [activity]))) == [Reason.ROOT_DIRECTORY]


def test_files_in_use_and_files_too_large_stay() -> None:
    plan = hot(candidate(1, closed=NOW - 1), candidate(2), *(candidate(n) for n in range(10, 30)),
               candidate(3, 300 * MIB))
    assert {"/d/f001", "/d/f003"}.isdisjoint(a.path for a in plan.actions)
    opened = DirectoryActivity("py.3", "/d", existing_files=(OpenFile(Fid(1, 1), "/d/f1"),))
    assert reasons(hot_small_files.plan(HOT, READ_AGAIN, Situation(room(), Pools(), [opened]))) == [Reason.IN_USE]


@given(st.lists(st.tuples(st.integers(1, 16 * MIB), st.integers(0, 10_000)), min_size=20, max_size=60),
       st.floats(0, 1e9))
def test_a_plan_fits_the_room_and_pays(files: list[tuple[int, int]], free: float) -> None:
    plan = hot(*(candidate(n, size, opens) for n, (size, opens) in enumerate(files)),
               where=room(flash_free=10 * GB + free, layout=None), max_moves=7)
    assert sum(a.size_bytes for a in plan.actions) <= free
    assert len(plan.actions) <= 7
    for action in plan.actions:
        assert action.size_bytes <= (action.layout.components[0].extent_end or 0)


UNUSED = ColdOnFlashEvidence(used_share=0.85, cold_files=4, cold_bytes=8 * GB, oldest_days=50.0, target_used_share=0.8,
                             cold_before=NOW - 7 * DAY, bytes_to_free=5.0 * GB)
COLD = Finding("cold-on-flash", NOW, "", "", (), "", UNUSED, subject="flash")
ON_FLASH = Layout((Component(0, None, "flash", 2, 4 * MIB),), composite=False)
HEAD_ON_FLASH = Layout((Component(0, MIB, "flash"), Component(MIB, None, "hdd", -1)))


def stored(number: int, days: float, size: int = 2 * GB, layout: Layout | None = ON_FLASH) -> StoredFile:
    return StoredFile(Fid(0x200000401, number, 0), f"/old/f{number}", size, ("flash",), NOW - days * DAY, layout)


def cold(*files: StoredFile, where: Capacity | None = None, **settings: int) -> Plan:
    tables = Tables({"cold_to_disk": ColdToDisk(**settings)})  # type: ignore[arg-type]
    situation = Situation(where or room(), Pools(), facts=Facts(stored=files), tables=tables)
    return cold_on_flash.plan(COLD, UNUSED, situation)


def test_the_coldest_go_until_there_is_room() -> None:
    plan = cold(stored(1, 10), stored(2, 50), stored(3, 30), stored(4, 40))
    assert [a.path for a in plan.actions] == ["/old/f2", "/old/f4", "/old/f3"]
    assert {a.kind for a in plan.actions} == {"migrate"}
    assert plan.actions[0].layout == Layout((Component(0, None, "hdd", 2, 4 * MIB),), composite=False)
    assert plan.actions[0].reason == "pool 'flash' is short of space, and the file was not used for 50 days"


def test_files_that_cannot_move_or_came_lately_keep_no_others_from_moving() -> None:
    tried = {stored(1, 90).fid: (0.0, NOW - 60), stored(2, 80).fid: (NOW - DAY, NOW - DAY)}  # moved, tried
    def was_tried(fid: Fid, moved_since: float, tried_since: float) -> bool:
        return fid in tried and (tried[fid][0] >= moved_since or tried[fid][1] >= tried_since)
    files = stored(1, 90, size=20 * GB), stored(2, 80), stored(3, 10)
    assert [a.path for a in cold(*files).actions] == ["/old/f1"]
    situation = Situation(room(), Pools(), facts=Facts(stored=files), was_tried=was_tried)
    assert [a.path for a in cold_on_flash.plan(COLD, UNUSED, situation).actions] == ["/old/f3"]


def test_cold_files_of_a_scope_go_to_the_disks_of_the_scope_and_no_further_than_needed() -> None:
    other = Pools(flash_pool="nvme", hdd_pool="sas")
    everything = Settings(scopes=(Scope("/fast", small_files_to_flash=other), Scope("/old", mode=Mode.OBSERVE)))
    on_nvme = Layout((Component(pool="nvme"),), composite=False)
    files = [replace(stored(n, 50 + n, layout=on_nvme), path=f"/fast/f{n}", pools=("nvme",)) for n in range(5)]
    files += [stored(9, 99), replace(stored(8, 99, layout=on_nvme), path="/elsewhere/f", pools=("nvme",))]
    where = replace(room(), pools={**room().pools, "nvme": ("n",), "sas": ("s",)},
                    size_bytes={**room().size_bytes, "sas": 1000 * GB},
                    avail_bytes={**room().avail_bytes, "sas": 900 * GB})
    situation = replace(situation_of(everything, where), facts=Facts(stored=tuple(files)))
    plan = plan_by_scope(replace(COLD, subject="nvme"), (), situation, everything.resolved_scopes)
    assert [action.path for action in plan.actions] == ["/fast/f4", "/fast/f3", "/fast/f2"]
    assert {action.layout.components[0].pool for action in plan.actions} == {"sas"}
    plan = plan_by_scope(COLD, (), situation, everything.resolved_scopes)
    assert (plan.actions, [action.path for action in plan.recommended]) == ((), ["/old/f9"])


def test_layouts_that_would_be_flattened_stay() -> None:
    mirrored = replace(ON_FLASH, mirror_count=2)
    on_mdt = Layout((Component(0, 64 * KIB, pattern="mdt"), Component(64 * KIB, None, "flash")))
    released = Layout((Component(pool="flash", pattern="raid0,released"),), composite=False)
    for layout in (mirrored, on_mdt, released, None):
        assert cold(stored(1, 50, layout=layout)).actions == ()


def test_a_large_file_with_its_beginning_on_flash_is_not_copied_and_counts_as_little() -> None:
    heads = [stored(n, 90, size=100 * GB, layout=HEAD_ON_FLASH) for n in range(3)]
    assert [a.path for a in cold(*heads, stored(7, 50)).actions] == ["/old/f7"]
    files = [stored(n, 90, size=2 * MIB, layout=HEAD_ON_FLASH) for n in range(400)]
    assert len(cold(*files).actions) == 400, "1 MiB of flash each"


@pytest.mark.parametrize(("size", "stripes"), [(MIB, 1), (MIB + 1, -1)])
def test_a_cold_file_gets_the_stripes_that_hold_it_and_not_those_of_larger_ones(size: int, stripes: int) -> None:
    (action,) = cold(stored(1, 50, size=size, layout=HEAD_ON_FLASH)).actions
    assert action.layout == Layout((Component(0, None, "hdd", stripes),), composite=False)


def test_a_cold_file_gets_no_more_stripes_than_the_disk_pool_has_targets() -> None:
    (action,) = cold(stored(1, 50, layout=Layout((Component(pool="flash", stripe_count=8),), composite=False))).actions
    assert action.layout.components[0].stripe_count == 2


def test_full_disks_take_nothing() -> None:
    assert reasons(cold(stored(1, 50), where=room(hdd_free=100 * GB))) == [Reason.NO_ROOM]
    assert reasons(cold(stored(1, 50), where=replace(room(), pools={"flash": ("x",)}))) == [Reason.NO_POOL]


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10 * GB)), max_size=30))
def test_only_cold_files_leave_and_no_more_than_needed(files: list[tuple[float, int]]) -> None:
    plan = cold(*(stored(n, days, size) for n, (days, size) in enumerate(files)))
    ages = {f"/old/f{n}": days for n, (days, _) in enumerate(files)}
    assert all(ages[a.path] >= 7 for a in plan.actions)
    assert sum(a.size_bytes for a in plan.actions[:-1]) < 5 * GB
