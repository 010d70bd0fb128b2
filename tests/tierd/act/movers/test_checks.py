"""Every kind of file that tierd does not move, with the reason."""

import errno
import stat
from collections.abc import Callable
from dataclasses import replace

import pytest

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileFlags, Hsm, HsmFlags, Quota
from lustre.layout.model import Component, Foreign, Layout
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, PAGE, MiniLustre, Node
from tests.tierd.later import raising
from tierd.act.movers import checks
from tierd.act.movers.checks import read_facts
from tierd.act.movers.moves import Move, MoveResult, outcome_of_error
from tierd.act.movers.space_and_quota import Destination, DestinationState

ARCHIVED = HsmFlags.EXISTS | HsmFlags.ARCHIVED


def having(**changes: object) -> Callable[[Node], None]:
    def change(node: Node) -> None:
        for name, value in changes.items():
            setattr(node, name, value)

    return change


def empty_in_the_archive(node: Node) -> None:
    node.store.data.clear()
    node.store.pages.clear()
    node.hsm = Hsm(ARCHIVED)


def laid_out(layout: Layout) -> Callable[[Node], None]:
    return lambda node: setattr(node.store, "layout", layout)


def of(pattern: str, **more: object) -> Layout:
    return Layout((replace(Component(pool="hdd", pattern=pattern), **more),))  # type: ignore[arg-type]


def reason(change: Callable[[Node], None], move: Move | None = None) -> str:
    lustre = MiniLustre()
    change(lustre.create("/a", b"data"))
    refusal = checks.refusal_for(move or Move("/a", FLASH), read_facts(MiniCalls(lustre), "/a"))
    return "" if refusal is None else refusal.reason


@pytest.mark.parametrize(("change", "expected"), [
    (having(), ""),
    (having(mode=stat.S_IFDIR | 0o755), "not-a-file"),
    (having(mode=stat.S_IFIFO | 0o600), "not-a-file"),
    (having(mode=stat.S_IFREG | 0o755), "executable"),
    (having(flags=FileFlags.IMMUTABLE), "immutable"),
    (having(flags=FileFlags.APPEND_ONLY), "append-only"),
    (having(pin=b"- pool: hdd\n"), "pinned"),
    (having(hsm=Hsm(ARCHIVED)), ""),
    (having(hsm=Hsm(ARCHIVED | HsmFlags.NO_RELEASE)), ""),
    (having(hsm=Hsm(ARCHIVED, left_behind=True)), "archived"),
    (having(hsm=Hsm(HsmFlags.EXISTS, left_behind=True)), "archived"),
    (empty_in_the_archive, "archived"),
    (having(hsm=Hsm(ARCHIVED | HsmFlags.DIRTY)), "archived-dirty"),
    (having(hsm=Hsm(ARCHIVED | HsmFlags.RELEASED)), "released"),
    (having(hsm=Hsm(ARCHIVED | HsmFlags.LOST)), "archive-state"),
    (having(hsm=Hsm(HsmFlags.CACHED_WRITABLE)), "archive-state"),
    (having(hsm=Hsm(ARCHIVED, in_progress=True)), "archiving"),
    (having(hsm=Hsm(ARCHIVED, unknown_flags=0x1000)), "archive-state"),
    (laid_out(of("raid0,released")), "released"),
    (laid_out(of("foreign", foreign=Foreign(b"dedcafe"))), "foreign"),
    (laid_out(of("raid0", parity_stripes=2)), "erasure-coded"),
    (laid_out(of("parity")), "erasure-coded"),
    (laid_out(of("raid0,compress")), "layout"),
    (laid_out(of("raid0,unknown_8000")), "layout"),
    (laid_out(of("raid0", flags=("init", "prefer", "extension"))), ""),
    (laid_out(of("raid0", flags=("init", "compress"))), "layout"),
    (laid_out(of("raid0", flags=("init", "nocompr"))), "layout"),
    (laid_out(of("raid0", flags=("0x1000",))), "layout"),
    (laid_out(replace(HDD, mirror_count=2)), "mirrored"),
    (laid_out(of("raid0,overstriped")), ""),
    (laid_out(of("mdt", extent_end=65536)), ""),
])
def test_file(change: Callable[[Node], None], expected: str) -> None:
    assert reason(change) == expected


def test_a_file_that_is_not_what_was_chosen() -> None:
    lustre = MiniLustre()
    node = lustre.create("/a", b"data")
    facts = read_facts(MiniCalls(lustre), "/a")
    chosen = Move("/a", FLASH, node.fid, 4, objects=checks.objects_digest(facts.layout))
    assert checks.refusal_for(chosen, facts) is None
    for other in (replace(chosen, fid=Fid(node.fid.sequence, 1)), replace(chosen, size_bytes=5),
                  replace(chosen, objects="other")):
        refusal = checks.refusal_for(other, facts) or checks.changed_layout_refusal(other, facts.layout)
        assert refusal.reason == "changed"


@pytest.mark.parametrize("wanted", [
    Layout((Component(0, PAGE, pool="flash"),)),
    Layout((Component(0, None),)),
    Layout((Component(0, PAGE, pool="flash"), Component(2 * PAGE, None, pool="hdd"))),
    replace(FLASH, mirror_count=2),
    of("raid0,released"),
], ids=["ends before the file", "no pool", "gap", "mirrors", "released"])
def test_layouts_no_file_should_get(wanted: Layout) -> None:
    assert reason(lambda node: node.store.data.extend(bytes(PAGE)), Move("/a", wanted)) == "wanted-layout"


def on_mdt(end: int) -> Layout:
    return Layout((Component(0, end, pattern="mdt"), Component(end, None, pool="hdd")))


@pytest.mark.parametrize(("present", "wanted", "allowed"), [
    (HDD, on_mdt(PAGE), True), (on_mdt(PAGE), on_mdt(PAGE), True), (on_mdt(PAGE), HDD, True),
    (on_mdt(PAGE), on_mdt(2 * PAGE), False), (on_mdt(2 * PAGE), on_mdt(PAGE), False),
])
def test_a_component_on_the_mdt_keeps_its_size(present: Layout, wanted: Layout, allowed: bool) -> None:
    assert reason(laid_out(present), Move("/a", wanted)) == ("" if allowed else "wanted-layout")


@pytest.mark.parametrize(("number", "result", "expected"), [
    (errno.ELOOP, MoveResult.REFUSED, "not-a-file"), (errno.ENOKEY, MoveResult.REFUSED, "encrypted"),
    (errno.ETXTBSY, MoveResult.GAVE_WAY, "busy"), (errno.ENOENT, MoveResult.GAVE_WAY, "gone"),
    (errno.ENOSPC, MoveResult.FAILED, "no-space"), (errno.EROFS, MoveResult.FAILED, "read-only"),
    (errno.EIO, MoveResult.FAILED, "error"),
])
def test_errors_have_their_outcome(number: int, result: MoveResult, expected: str) -> None:
    outcome = outcome_of_error(Move("/a", FLASH), of_errno(number, "open", "/a"))
    assert (outcome.result, outcome.reason, "/a" in outcome.detail) == (result, expected, False)


# Whether the targets of a pool, and the owner's quota, have room for what is to be moved


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
