"""Which files move from the fullest targets of a pool to its emptiest, and to which."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, StripeObject, same_shape
from tierd.decide.plans import FlashSettings, Plan
from tierd.decide.relocation import Destinations, bytes_per_ost, hard_case, osts_of, relocate
from tierd.model import Capacity, Facts, Finding, StoredFile, TargetFill
from tierd.policies import imbalance
from tierd.policies.imbalance import FillEvidence, Rebalance
from tierd.policies.protocol import Situation, Tables
from tierd.refusal import Reason, Refusal

GB, DAY, NOW = 10**9, 86_400.0, 1e9
MEMBERS = tuple(f"l-OST{n:04x}" for n in range(5))
POOLS = {"hdd": MEMBERS, "flash": ("l-OST0005",)}
EVIDENCE = FillEvidence(used_share=0.9, others_used_share=0.2, pool_used_share=0.34)
FINDING = Finding("imbalance", NOW, "", "", (MEMBERS[0],), "", EVIDENCE, subject=f"fill of {MEMBERS[0]}")


def capacity(*used: float, size: int = 100 * GB) -> Capacity:
    fill = {target: TargetFill(size, round(size * (1 - share))) for target, share in zip(MEMBERS, used, strict=True)}
    fill["l-OST0005"] = TargetFill(size, size)
    return Capacity(POOLS, {}, {}, fill=fill)


def component(number: int, *osts: int, pool: str = "hdd", **more: object) -> Component:
    objects = tuple(StripeObject(index, Fid(0x100000000, 16 * number + n + 1)) for n, index in enumerate(osts))
    return replace(Component(pool=pool, stripe_count=len(osts), objects=objects, flags=("init",)), **more)  # type: ignore[arg-type]


def file(number: int, *osts: int, size: int = GB, idle_days: float = 10.0, layout: Layout | None = None) -> StoredFile:
    layout = layout or Layout((component(number, *osts),), composite=False)
    return StoredFile(Fid(0x200000401, number + 1), f"/d/f{number:03d}", size, ("hdd",), NOW - idle_days * DAY, layout)


def decided(where: Capacity, *files: StoredFile, slowed: bool = False, draining: Collection[str] = (),
            **of: object) -> Plan:
    tables = Tables({"rebalance": Rebalance(**of)})  # type: ignore[arg-type]
    return imbalance.plan(FINDING, EVIDENCE, Situation(
        where, FlashSettings(), facts=Facts(resident=files), tables=tables, victim_slowed=slowed,
        draining=draining))


UNEVEN = capacity(0.9, 0.2, 0.3, 0.2, 0.1)


def test_large_files_move_first_from_the_fullest_target_to_the_emptiest() -> None:
    plan = decided(UNEVEN, file(1, 0, size=GB), file(2, 0, size=20 * GB), file(3, 0, size=GB, idle_days=90))
    assert [action.path for action in plan.actions] == ["/d/f002", "/d/f003", "/d/f001"]
    assert [action.layout.components[0].ost_list for action in plan.actions] == [(4,), (1,), (3,)]
    assert {action.layout.components[0].pool for action in plan.actions} == {"hdd"}
    assert plan.actions[0].reason == "OST0000 is fuller than pool 'hdd', which is 34% full"


def test_the_moves_end_when_the_target_is_near_its_pool() -> None:
    plan = decided(UNEVEN, *(file(n, 0) for n in range(90)))
    left = 0.9 - len(plan.actions) / 100
    assert 0.34 <= left <= 0.34 + 0.03 + 0.01


def without(where: Capacity, *closed: str) -> Capacity:
    return replace(where, pools={pool: tuple(t for t in members if t not in closed)
                                 for pool, members in where.pools.items()}, closed={"hdd": closed})


def test_a_target_that_is_drained_takes_nothing_and_keeps_no_new_stripe() -> None:
    drained = without(capacity(0.9, 0.2, 0.3, 0.2, 0.0), MEMBERS[4])
    plan = decided(drained, *(file(n, 0) for n in range(40)), file(90, 0, 4, size=2 * GB), file(91, 0, 2))
    assert plan.actions
    assert not any(4 in action.layout.components[0].ost_list for action in plan.actions)
    assert "/d/f090" not in {action.path for action in plan.actions}


def test_a_full_target_without_new_objects_gives_files() -> None:
    plan = decided(without(UNEVEN, MEMBERS[0]), *(file(n, 0) for n in range(90)))
    assert 40 < len(plan.actions) <= 56
    assert {index for action in plan.actions for index in action.layout.components[0].ost_list} <= {1, 2, 3, 4}


@pytest.mark.parametrize(("layout", "reason"), [
    (Layout((component(1, 0), component(2, 1)), mirror_count=2), Reason.MIRRORED),
    (Layout((component(1, 0, pattern="raid0,released"),)), Reason.RELEASED),
    (Layout((component(1, 0, parity_stripes=2),)), Reason.ERASURE_CODED),
    (Layout((component(1, 0, flags=("init", "parity")),)), Reason.ERASURE_CODED),
    (Layout((component(1, 0, pattern="foreign"),)), Reason.FOREIGN),
    (Layout((component(1, 0, pattern="raid0,compress"),)), Reason.LAYOUT),
    (Layout((component(1, 0, pool="flash"),)), None),
])
def test_hard_cases_stay(layout: Layout, reason: Reason | None) -> None:
    assert decided(UNEVEN, file(1, layout=layout)).actions == ()
    assert getattr(hard_case(layout), "reason", None) is reason


def reasons(plan: Plan) -> list[Reason]:
    assert plan.actions == ()
    return [refusal.reason for refusal in plan.refusals]


@pytest.mark.parametrize("one", [
    file(1, 0, idle_days=0.5), file(1, 0, size=1000), file(1, 0, size=2 << 40), file(1, 1), file(1, 0, size=60 * GB)],
    ids=["in use", "small", "too large", "elsewhere", "larger than what the target has too much"])
def test_other_files_stay(one: StoredFile) -> None:
    assert reasons(decided(UNEVEN, one)) == [Reason.NOTHING_TO_DO]


def test_nothing_moves_while_a_job_is_slowed_there_or_the_space_of_a_target_is_unknown() -> None:
    assert reasons(decided(UNEVEN, file(1, 0), slowed=True)) == [Reason.OTHERS_WOULD_LOSE]
    assert reasons(decided(UNEVEN, file(1, 0), draining=MEMBERS[4:])) == [Reason.OTHER_MOVER]
    known = {target: room for target, room in UNEVEN.fill.items() if target != MEMBERS[2]}
    for limits, free in (({"closed": (4,)}, [1, 3]), ({"most_used": {1: 0.25, 3: 0.2}}, [1])):
        room = Destinations(POOLS, known, 0.1, **limits)
        assert [index for index in range(5) if room.may_take(index, GB)] == free
    assert reasons(decided(replace(UNEVEN, fill=known), file(1, 0))) == [Reason.NO_POOL]
    assert decided(capacity(0.5, 0.5, 0.51, 0.5, 0.5), file(1, 0)) == Plan((), ()), "an even pool"


def test_a_file_that_moved_lately_stays() -> None:
    files = [file(1, 0), file(2, 0)]
    asked = set()

    def was_tried(fid: Fid, moved_since: float, tried_since: float) -> bool:
        asked.add((NOW - moved_since, NOW - tried_since))
        return fid == files[0].fid

    plan = imbalance.plan(FINDING, EVIDENCE, Situation(
        UNEVEN, FlashSettings(), facts=Facts(resident=tuple(files)), was_tried=was_tried))
    assert asked == {(30 * DAY, 12 * 3600.0)}
    assert [action.path for action in plan.actions] == ["/d/f002"]


def test_data_on_the_mdt_and_components_without_objects_keep_their_form() -> None:
    layout = Layout((Component(0, 65536, pattern="mdt", stripe_count=0, flags=("init",)),
                     component(1, 0, extent_start=65536, extent_end=GB, stripe_size=4 << 20),
                     Component(GB, None, "hdd", 4, 4 << 20)))
    (action,) = decided(UNEVEN, file(1, layout=layout)).actions
    first, second, third = action.layout.components
    assert (first.pattern, first.extent_end, second.ost_list, second.stripe_size) == ("mdt", 65536, (4,), 4 << 20)
    assert (third.pool, third.stripe_count, third.ost_list) == ("hdd", 4, ())


def test_a_file_without_a_pool_stays_in_the_smallest_pool_with_all_its_targets() -> None:
    pools = {"all": [*MEMBERS, "l-OST0005"], "hdd": MEMBERS, "part": MEMBERS[1:3]}
    room = Destinations(pools, UNEVEN.fill, 0.1, closed=(0,))
    found = relocate(Layout((component(1, 0, 1, pool=""),), composite=False), GB, {0}, room)
    assert not isinstance(found, Refusal)
    assert found.components[0].ost_list == (4, 1), "not OST0005, which is empty and on flash"


def test_a_file_on_all_targets_gets_one_stripe_less_only_where_that_is_allowed() -> None:
    layout = Layout((component(1, 0, 1, 2, 3, 4),), composite=False)
    room = Destinations(POOLS, UNEVEN.fill, 0.1, closed=(0,))
    refused = relocate(layout, 5 * GB, {0}, room)
    assert isinstance(refused, Refusal)
    assert refused.reason == Reason.NO_ROOM
    found = relocate(layout, 5 * GB, {0}, room, may_narrow=True)
    assert not isinstance(found, Refusal)
    assert (found.components[0].ost_list, found.components[0].stripe_count) == ((1, 2, 3, 4), 4)
    assert room.avail_bytes[1] == 80 * GB - GB / 4
    assert isinstance(relocate(layout, 1300 * GB, {0}, room, may_narrow=True), Refusal), "no room for its bytes"
    alone = Layout((component(1, 0),), composite=False)
    nowhere = Destinations(POOLS, UNEVEN.fill, 0.1, closed=range(5))
    assert isinstance(relocate(alone, GB, {0}, nowhere, may_narrow=True), Refusal), "its only stripe"


def test_an_overstriped_file_may_get_two_stripes_on_one_target() -> None:
    layout = Layout((component(1, 0, 0, 1, 2, 3, 4, pattern="raid0,overstriped"),), composite=False)
    found = relocate(layout, GB, {0}, Destinations(POOLS, UNEVEN.fill, 0.1, closed=(0,)))
    assert not isinstance(found, Refusal)
    assert len(found.components[0].ost_list) == 6
    assert 0 not in found.components[0].ost_list


shares = st.floats(0.0, 0.89)
sizes = st.integers(1 << 20, 30 * GB)
layouts = st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True)


@given(st.tuples(shares, shares, shares, shares, shares), st.lists(st.tuples(layouts, sizes), max_size=40))
@settings(max_examples=100)
def test_every_plan_brings_the_pool_nearer_to_even_and_ends(
        used: tuple[float, ...], drawn: list[tuple[list[int], int]]) -> None:
    where = capacity(*used)
    files = {f"/d/f{n:03d}": file(n, *osts, size=size) for n, (osts, size) in enumerate(drawn)}
    after = {n: where.fill[target].used for n, target in enumerate(MEMBERS)}
    level = sum(after.values()) / len(after)
    seen: Counter[str] = Counter()
    for _ in range(len(files) + 2):
        fill = {MEMBERS[n]: TargetFill(100 * GB, round(100 * GB * (1 - share))) for n, share in after.items()}
        plan = decided(replace(where, fill=fill), *(f for f in files.values() if not seen[f.path]))
        before = dict(after)
        for action in plan.actions:
            seen[action.path] += 1
            moved = files[action.path]
            for index, held in bytes_per_ost(moved.layout, moved.size_bytes).items():
                after[index] -= held / (100 * GB)
            for part in action.layout.components:
                assert len(set(part.ost_list)) == len(part.ost_list) > 0
                for index in part.ost_list:
                    after[index] += moved.size_bytes / len(part.ost_list) / (100 * GB)
        assert max(after.values()) <= max(before.values()) + 1e-6
        assert min(after.values()) >= min(before.values()) - 1e-6
        for index, share in after.items():
            if before[index] > level + 1e-6:
                assert share >= level - 1e-6, "a target that gives never needs to take"
            else:
                assert share <= max(level, before[index]) + 1e-6, "a target that takes never needs to give"
        if not plan.actions:
            break
    else:
        pytest.fail("the moves do not end")
    assert set(seen.values()) <= {1}


@given(st.lists(st.tuples(layouts, st.booleans()), min_size=1, max_size=3), sizes,
       st.sets(st.integers(0, 4), min_size=1, max_size=3))
@example([([0], False), ([0, 1, 2, 3, 4], False)], 3 << 20, {0})
def test_a_relocation_leaves_these_targets_and_changes_nothing_else(
        drawn: list[tuple[list[int], bool]], size: int, leave: set[int]) -> None:
    parts = [component(n, *osts, extent_start=n << 20, extent_end=(n + 1) << 20,
                       pattern="raid0,overstriped" if over else "raid0") for n, (osts, over) in enumerate(drawn)]
    layout = Layout((*parts[:-1], replace(parts[-1], extent_end=None)))
    room = Destinations(POOLS, UNEVEN.fill, 0.0, closed=leave)
    before = dict(room.avail_bytes)
    found = relocate(layout, size, leave, room, may_narrow=False)
    if isinstance(found, Refusal):
        assert room.avail_bytes == before
        return
    assert hard_case(found) is None
    named = {index for part in found.components for index in part.ost_list}
    assert not named & leave
    assert named <= set(range(5))
    bare = [replace(part, ost_list=(), objects=()) for part in found.components]
    assert same_shape(replace(found, components=tuple(bare)), layout)
    assert osts_of(layout) - leave <= named
