"""Flash or the MDT: by the mix of operations, the site's verdicts, and the room and load of the MDTs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import explain
from tests.tierd.worlds import noise
from tierd.decide.plans import FlashSettings, Plan, covers, flash_first
from tierd.detect.metadata_load import metadata_targets
from tierd.model import (
    UNSEEN,
    Candidate,
    Capacity,
    DirectoryActivity,
    Finding,
    MetadataSpace,
    MetadataTargets,
    Service,
    Window,
)
from tierd.policies import data_on_mdt, hot_small_files, noisy_neighbour
from tierd.policies.data_on_mdt import DataOnMdt
from tierd.policies.hot_small_files import HotSmallFilesEvidence
from tierd.policies.noisy_neighbour import NoisyNeighbourEvidence
from tierd.policies.protocol import Choice, Place, Situation, Tables, Use
from tierd.refusal import Reason

KIB, MIB, GB, NOW = 1 << 10, 1 << 20, 10**9, 1e9
POOLS = {"flash": ("l-OST0000",), "hdd": ("l-OST0001", "l-OST0002")}
MDT = MetadataSpace(100 * GB, 80 * GB, 10**8, 8 * 10**7)
IDLE = MetadataTargets((MDT, MDT), MIB, 1.0)
ROOM = Capacity(POOLS, {"flash": 100 * GB, "hdd": 1000 * GB}, {"flash": 50 * GB, "hdd": 500 * GB}, {"/d": None}, IDLE)
ALLOWED: tuple[Place, ...] = (data_on_mdt.place,)
READ, MIXED, WRITTEN = Use(0.9), Use(0.5), Use(0.1)


def chosen(use: Use = READ, room: Capacity = ROOM, size: int = 64 * KIB, places: tuple[Place, ...] = ALLOWED,
           **settings: float) -> Choice:
    tables = Tables({"data_on_mdt": DataOnMdt(**settings)})  # type: ignore[arg-type]
    return Situation(room, FlashSettings(), tables=tables, places=places).placed(
        flash_first(size, None, FlashSettings()), use)


def test_files_that_are_mostly_read_go_to_the_mdt() -> None:
    assert explain(chosen().layout) == "first 64K on the MDT, rest on hdd (default stripes)"
    assert covers(chosen().layout, 64 * KIB, "flash"), "otherwise it would be set repeatedly"
    assert [chosen(use).on_mdt for use in (Use(0.75), Use(0.74), MIXED, WRITTEN)] == [True, False, False, False]
    assert chosen(MIXED, reads_per_write=1.0).on_mdt


def test_the_load_of_the_mdts_is_unknown_while_one_of_them_is_not_seen() -> None:
    windows = [Window(5.0 * n, 5.0 * n + 5, {}, {}, metadata={"l-MDT0000": {"open": Service(100.0, 40_000.0)}})
               for n in range(12)]
    for conditions, slowdown in (({}, 1.0), ({"l-OST0001": UNSEEN}, 1.0), ({"l-MDT0001": UNSEEN}, None)):
        windows[-1] = replace(windows[-1], conditions=conditions)
        found = metadata_targets((MDT, MDT), windows)
        assert found.slowdown == slowdown


@pytest.mark.parametrize(("use", "won_back", "reason"), [
    (MIXED, {"flash": [0.0, 0.1]}, "on the MDT, because the MDT is expected to win back"),
    (MIXED, {"flash": [0.9, 0.9]}, "on flash, because 50% of the operations are reads"),
    (MIXED, {"": [0.95] * 8, "flash": [0.6] * 8}, "on the MDT, because the MDT is expected to win back"),
    (READ, {"": [0.1, 0.0, 0.1]}, "on flash, because the MDT is expected to win back"),
    (READ, {"": [0.9] * 9, "flash": [0.85] * 9}, "on the MDT, because 90% of the operations are reads"),
    (READ, {"": [0.2] * 8, "flash": [0.7] * 8},
     "on flash, because the MDT is expected to win back 40% of a loss less; here earlier acts won back 20% on the MDT"),
    (WRITTEN, {"": [0.9] * 8, "flash": [0.3] * 8},
     "on the MDT, because the MDT is expected to win back 48% of a loss more"),
    (WRITTEN, {"": [0.82] * 8, "flash": [0.8] * 8}, "on flash, because 10% of the operations are reads"),
])
def test_a_measured_difference_decides_and_the_reason_is_given(
        use: Use, won_back: dict[str, list[float]], reason: str) -> None:
    choice = chosen(use, replace(ROOM, won_back=won_back))
    assert choice.reason.startswith(reason)
    assert choice.on_mdt == reason.startswith("on the MDT")


FULL = MetadataSpace(100 * GB, 29 * GB, 10**8, 8 * 10**7)
NO_INODES = MetadataSpace(100 * GB, 80 * GB, 10**8, 29 * 10**6)


@pytest.mark.parametrize(("metadata", "reason"), [
    (None, Reason.MDT_UNKNOWN),
    (MetadataTargets((), MIB, 1.0), Reason.MDT_UNKNOWN),
    (replace(IDLE, slowdown=None), Reason.MDT_UNKNOWN),
    (replace(IDLE, slowdown=1.6), Reason.MDT_BUSY),
    (replace(IDLE, slowdown=float("inf")), Reason.MDT_BUSY),
    (replace(IDLE, spaces=(MDT, FULL)), Reason.MDT_ROOM),
    (replace(IDLE, spaces=(MDT, NO_INODES)), Reason.MDT_ROOM),
    (replace(IDLE, data_limit_bytes=32 * KIB), Reason.MDT_LIMIT),
    (replace(IDLE, data_limit_bytes=0), Reason.MDT_LIMIT),
])
def test_a_reason_against_the_mdt_leaves_the_files_to_flash(metadata: MetadataTargets | None, reason: Reason) -> None:
    choice = chosen(room=replace(ROOM, metadata=metadata))
    assert not choice.on_mdt
    assert choice.refused.reason == reason


def test_an_unknown_limit_is_the_default_of_lustre() -> None:
    unknown = replace(ROOM, metadata=replace(IDLE, data_limit_bytes=None))
    assert chosen(room=unknown, size=MIB).on_mdt
    assert not chosen(room=unknown, size=2 * MIB).on_mdt
    assert chosen(room=replace(ROOM, metadata=replace(IDLE, data_limit_bytes=8 * MIB)), size=4 * MIB).on_mdt
    assert not chosen(room=replace(ROOM, metadata=replace(IDLE, data_limit_bytes=8 * MIB)), size=8 * MIB).on_mdt


def test_half_an_hour_of_new_files_must_fit() -> None:
    assert chosen(replace(READ, growth_bytes_per_second=27e6)).on_mdt  # 49 GB of the 50 GB above the reserve
    assert not chosen(replace(READ, growth_bytes_per_second=28e6)).on_mdt
    assert chosen(replace(READ, files_per_second=27_000.0)).on_mdt
    assert not chosen(replace(READ, files_per_second=28_000.0)).on_mdt


@pytest.mark.parametrize(("min_free", "free", "undone"), [
    (0.3, 31, False), (0.3, 21, False), (0.3, 19, True), (0.1, 11, False), (0.1, 6, True)])
def test_what_an_mdt_may_take_is_not_undone_at_once(min_free: float, free: int, *, undone: bool) -> None:
    room = replace(ROOM, metadata=replace(IDLE, spaces=(replace(MDT, avail_bytes=free * GB),)))
    layout, tables = chosen().layout, Tables({"data_on_mdt": DataOnMdt(min_free=min_free)})
    assert chosen(room=room, min_free=min_free).on_mdt == (free > 100 * min_free)
    assert bool(data_on_mdt.is_short(layout, room, tables)) == undone


@given(st.integers(1, 8 * MIB), st.floats(0, 1), st.integers(0, 100 * GB), st.integers(0, 10**8),
       st.one_of(st.none(), st.integers(0, 16 * MIB)), st.one_of(st.none(), st.floats(0.1, 10)),
       st.floats(0, 1e9))
def test_no_mdt_gets_more_than_it_has(size: int, read_share: float, avail: int, inodes: int, limit: int | None,
                                      slowdown: float | None, growth: float) -> None:
    space = MetadataSpace(100 * GB, avail, 10**8, inodes)
    end = -(-size // (64 * KIB)) * 64 * KIB
    choice = chosen(Use(read_share, growth), replace(ROOM, metadata=MetadataTargets((MDT, space), limit, slowdown)),
                    size=end)
    if choice.on_mdt:
        assert choice.layout.components[0].extent_end == end <= (MIB if limit is None else min(limit, 4 * MIB))
        assert avail - growth * 1800 >= 0.3 * 100 * GB
        assert inodes >= 0.3 * 10**8
        assert slowdown is not None
        assert slowdown <= 1.5


NOISE = noise(
    aggressor_operations_per_second=60.0, aggressor_operations_share=0.6, aggressor_bytes_per_second=4e6,
    aggressor_mean_rpc_bytes=65536.0, aggressor_largest_rpc_bytes=65536, aggressor_read_share=0.9,
    aggressor_files_per_second=10.0, aggressor_bytes_per_file=60000.0)
NEIGHBOUR = Finding("noisy-neighbour", NOW, "m.2", "s.1", ("l-OST0001",), "", NOISE, ("/d",))


def files(count: int, size: int = 60_000) -> tuple[Candidate, ...]:
    return tuple(Candidate(Fid(0x200000401, n, 0), f"/d/f{n:04d}", NOW - 100, size_bytes=size, opens=10)
                 for n in range(count))


def against_neighbour(room: Capacity = ROOM, evidence: NoisyNeighbourEvidence = NOISE) -> Plan:
    some = files(30)
    activity = DirectoryActivity("m.2", "/d", creates=100, unlinks=100, candidates=some,
                                 sizes=tuple(c.size_bytes or 0 for c in some))
    return noisy_neighbour.plan(replace(NEIGHBOUR, evidence=evidence), evidence,
                                Situation(room, FlashSettings(), [activity], places=ALLOWED))


def test_files_of_a_neighbour_that_reads_them_go_to_the_mdt() -> None:
    plan = against_neighbour()
    assert [a.kind for a in plan.actions] == ["set-default-layout"] + ["migrate"] * 30
    assert {explain(a.layout) for a in plan.actions[1:]} == {"first 64K on the MDT, rest on hdd (1 stripe)"}
    assert "on the MDT, because 90% of the operations are reads: an open returns the data" in plan.actions[0].reason
    written = against_neighbour(evidence=replace(NOISE, aggressor_read_share=0.2))
    assert "on flash, because 20% of the operations are reads: writes are slower" in written.actions[0].reason
    assert {a.layout.components[0].pool for a in written.actions} == {"flash"}


def test_moves_fit_the_room_of_the_fullest_mdt() -> None:
    nearly = MetadataSpace(100 * GB, 30 * GB + 200_000, 10**8, 8 * 10**7)
    plan = against_neighbour(replace(ROOM, metadata=replace(IDLE, spaces=(MDT, nearly))))
    assert sum(a.kind == "migrate" for a in plan.actions) == 3


def test_the_mdt_takes_what_a_full_flash_pool_cannot() -> None:
    full = replace(ROOM, avail_bytes={"flash": 0, "hdd": 500 * GB})
    for room in (full, replace(ROOM, pools={"hdd": ROOM.pools["hdd"]})):
        assert against_neighbour(room).actions[0].layout.components[0].on_mdt
    written = against_neighbour(full, replace(NOISE, aggressor_read_share=0.1)).actions[0]
    assert written.layout.components[0].on_mdt, "disks are the alternative, and slower"
    assert "flash has no room, and the MDT writes small files 20 to 40% faster than disks" in written.reason
    refused = against_neighbour(replace(full, metadata=replace(IDLE, slowdown=9.0)))
    assert (refused.actions, [why.reason for why in refused.refusals]) == ((), [Reason.NO_ROOM, Reason.MDT_BUSY])


def test_hot_files_go_to_the_mdt_if_two_copies_pay() -> None:
    evidence = HotSmallFilesEvidence(opens_per_second=50.0, disk_reads_per_second=50.0, read_bytes_per_open=60_000.0,
                                     disk_read_share=1.0, read_operations_share=1.0, usec_per_rpc=9000.0)
    hot = Finding("hot-small-files", NOW, "py.3", "", (), "", evidence, ("/d",))
    activity = DirectoryActivity("py.3", "/d", creates=5, candidates=files(30), sizes=(60_000,) * 30)
    large = DirectoryActivity("py.3", "/large", sizes=(3 * MIB,) * 30)  # for flash, and first

    def plan(seldom: float = 1.0, places: tuple[Place, ...] = ALLOWED, where: Capacity = ROOM) -> Plan:
        rare = replace(evidence, opens_per_second=50.0 * seldom, disk_reads_per_second=50.0 * seldom)
        return hot_small_files.plan(hot, rare, Situation(where, FlashSettings(), [large, activity], places=places))

    assert {explain(a.layout) for a in plan().actions[1:]} == {"first 64K on the MDT, rest on hdd (1 stripe)"}
    assert [a.kind for a in plan(0.0008).actions] == ["set-default-layout"]
    assert sum(a.kind == "migrate" for a in plan(0.0008, ()).actions) == 30, "one copy to flash pays"
    for without, why in ((replace(ROOM, avail_bytes={**ROOM.avail_bytes, "flash": 0}), Reason.NO_ROOM),
                         (replace(ROOM, pools={"hdd": ROOM.pools["hdd"]}), Reason.NO_POOL)):
        none = plan(places=(), where=without)
        assert (len(plan(where=without).actions), len(none.actions), none.refusals[0].reason) == (31, 0, why)
