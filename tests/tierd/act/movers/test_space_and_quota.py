"""Whether the targets of a pool, and the owner's quota, have room for what is to be moved."""

from collections.abc import Callable

import pytest

from lustre.errors import of_errno
from lustre.filesystem import Quota
from lustre.layout.model import Component, Layout
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, PAGE, MiniLustre
from tests.tierd.later import raising
from tierd.act.movers.checks import read_facts
from tierd.act.movers.moves import Move
from tierd.act.movers.space_and_quota import Destination, DestinationState


def room_reason(lustre: MiniLustre, wanted: Layout, quota: Callable[[int, int, str], Quota] | None = None) -> str:
    facts = read_facts(MiniCalls(lustre), "/a")
    destination = Destination(lambda: lustre.pool_members, lustre.space, quota or lustre.quota)
    refusal = DestinationState(destination).refusal(Move("/a", wanted), facts)
    return "" if refusal is None else refusal.reason


@pytest.fixture
def lustre() -> MiniLustre:
    found = MiniLustre()
    found.create("/a", bytes(10 * PAGE))
    return found


def in_pool(name: str, count: int = 1) -> Layout:
    return Layout((Component(pool=name, stripe_count=count),), composite=False)


def test_pools(lustre: MiniLustre) -> None:
    assert room_reason(lustre, FLASH) == ""
    assert room_reason(lustre, in_pool("nosuch")) == "no-such-pool"
    assert room_reason(lustre, in_pool("empty")) == "empty-pool"
    assert room_reason(lustre, in_pool("flash", 3)) == "wanted-layout"
    assert room_reason(lustre, in_pool("flash", -1)) == ""


def test_a_target_that_is_down_gets_no_stripe(lustre: MiniLustre, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lustre makes a file with fewer stripes then, and says nothing."""
    assert room_reason(lustre, in_pool("hdd", 4)) == ""
    rooms = {target: room for target, room in lustre.space().items() if target != "lustre-OST0005"}
    monkeypatch.setattr(lustre, "space", lambda: rooms)
    assert room_reason(lustre, in_pool("hdd", 4)) == "wanted-layout"
    assert room_reason(lustre, in_pool("hdd", 3)) == ""


@pytest.mark.parametrize(("end", "reason"), [(10, ""), (9, "wanted-layout")])
def test_only_components_that_hold_the_file_need_a_target_for_each_stripe(
        lustre: MiniLustre, end: int, reason: str) -> None:
    wide = Layout((Component(0, end * PAGE, pool="flash"), Component(end * PAGE, None, pool="hdd", stripe_count=99)))
    assert room_reason(lustre, wide) == reason


def test_part_of_a_pool_stays_free(lustre: MiniLustre) -> None:
    lustre.room_bytes = 21 * PAGE  # 10 are taken, 10 more would fit, but then nothing would be left
    assert room_reason(lustre, FLASH) == ""
    lustre.room_bytes = 15 * PAGE
    assert room_reason(lustre, FLASH) == "room"


def test_a_pool_whose_targets_cannot_be_reached_has_no_room(lustre: MiniLustre) -> None:
    lustre.pool_members["flash"] = ("lustre-OST00ff",)
    assert room_reason(lustre, FLASH) == "room"


@pytest.mark.parametrize(("kind", "owner", "pool"), [(0, 1001, ""), (0, 1001, "flash"), (1, 1001, "flash"), (2, 7, "")])
def test_the_owners_quota_counts_though_root_may_exceed_it(
        lustre: MiniLustre, kind: int, owner: int, pool: str) -> None:
    lustre.quotas[kind, owner, pool] = Quota(used_bytes=PAGE, soft_limit_bytes=0, hard_limit_bytes=12 * PAGE)
    assert room_reason(lustre, FLASH) == ""
    lustre.quotas[kind, owner, pool] = Quota(used_bytes=PAGE, soft_limit_bytes=5 * PAGE, hard_limit_bytes=12 * PAGE)
    assert room_reason(lustre, FLASH) == "quota"


def test_a_file_in_two_pools_counts_whole_for_its_owner(lustre: MiniLustre) -> None:
    """Each part fits alone. Together they would use the quota up, and the owner's writes would fail."""
    halves = Layout((Component(0, 5 * PAGE, pool="flash"), Component(5 * PAGE, None, pool="hdd")))
    lustre.quotas[0, 1001, ""] = Quota(used_bytes=10 * PAGE, soft_limit_bytes=0, hard_limit_bytes=19 * PAGE)
    assert room_reason(lustre, halves) == "quota"
    lustre.quotas[0, 1001, ""] = Quota(used_bytes=10 * PAGE, soft_limit_bytes=0, hard_limit_bytes=20 * PAGE)
    assert room_reason(lustre, halves) == ""


def test_no_quotas_and_quotas_that_cannot_be_read(lustre: MiniLustre) -> None:
    assert room_reason(lustre, FLASH, raising(of_errno(3, "quotactl"))) == ""
    assert room_reason(lustre, FLASH, raising(of_errno(5, "quotactl"))) == "quota"


def refusals(lustre: MiniLustre, paths: list[str]) -> list[str]:
    """Reasons for files that are checked in one batch."""
    batch = DestinationState(Destination(lambda: lustre.pool_members, lustre.space, lustre.quota))
    found = [batch.refusal(Move(path, FLASH), read_facts(MiniCalls(lustre), path)) for path in paths]
    return ["" if refusal is None else refusal.reason for refusal in found]


def test_files_of_a_batch_must_fit_together(lustre: MiniLustre) -> None:
    """Each file fits alone. Checked one by one, all would move and fill the pool."""
    paths = [f"/f{n}" for n in range(4)]
    for path in paths:
        lustre.create(path, bytes(10 * PAGE))
    lustre.room_bytes = 66 * PAGE  # of each of two targets, and 50 are taken: two more fit, and something stays free
    assert refusals(lustre, paths) == ["", "", "room", "room"]
    lustre.room_bytes = 1 << 30
    lustre.quotas[0, 1001, ""] = Quota(50 * PAGE, 0, 75 * PAGE)
    assert refusals(lustre, paths) == ["", "", "quota", "quota"]
    lustre.quotas = {(2, 7, "flash"): Quota(0, 15 * PAGE, 0)}
    assert refusals(lustre, paths) == ["", "quota", "quota", "quota"]


def test_a_quota_that_some_targets_do_not_report_is_unknown(lustre: MiniLustre) -> None:
    lustre.quotas[0, 1001, ""] = Quota(0, 0, 1 << 30, whole=False)
    assert refusals(lustre, ["/a"]) == ["quota"]
    lustre.quotas[0, 1001, ""] = Quota(0, 0, 0, whole=False)  # without a limit it does not matter
    assert refusals(lustre, ["/a"]) == [""]


def on_osts(*indices: int, pool: str = "flash") -> Layout:
    return Layout((Component(pool=pool, stripe_count=len(indices), ost_list=indices),), composite=False)


def test_the_named_osts_must_have_room_and_be_in_the_pool(lustre: MiniLustre) -> None:
    flash = tuple(int(target[-4:], 16) for target in lustre.pool_members["flash"])
    assert room_reason(lustre, on_osts(*flash)) == ""
    assert room_reason(lustre, on_osts(flash[0], pool="")) == "", "the list says more than a pool"
    assert room_reason(lustre, on_osts(77)) == "pool-changed"
    assert room_reason(lustre, on_osts(77, pool="")) == "room", "the space of that OST is unknown"
    lustre.room_bytes = 10 * PAGE
    assert room_reason(lustre, on_osts(flash[0])) == "room"
