"""Every kind of file that is left alone, with the reason that is told."""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable
from dataclasses import replace

import pytest

from lustre.calls import FileFlags, Hsm, HsmFlags, Quota
from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import Space
from lustre.layout import Component, Foreign, Layout
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, PAGE, PFL, MiniLustre, Node
from tierd.act.movers import checks, room
from tierd.act.movers.facts import look
from tierd.act.movers.outcome import Move, Result, of_error
from tierd.act.movers.room import Destination

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
    refusal = checks.of_file(move or Move("/a", FLASH), look(MiniCalls(lustre), "/a"))
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
    (laid_out(replace(HDD, mirror_count=2)), "mirrored"),
    (laid_out(of("raid0,overstriped")), ""),
    (laid_out(of("mdt", extent_end=65536)), ""),
])
def test_file(change: Callable[[Node], None], expected: str) -> None:
    assert reason(change) == expected


def test_mirrors_may_go_when_asked_for() -> None:
    mirrored = laid_out(replace(HDD, mirror_count=2))
    assert reason(mirrored, Move("/a", FLASH, mirrors_may_go=True)) == ""


def test_a_file_that_is_not_what_was_chosen() -> None:
    lustre = MiniLustre()
    node = lustre.create("/a", b"data")
    facts = look(MiniCalls(lustre), "/a")
    chosen = Move("/a", FLASH, node.fid, 4, node.mtime_ns / 1e9, 7)
    assert checks.of_file(chosen, facts) is None
    for other in (replace(chosen, fid=Fid(node.fid.sequence, 1)), replace(chosen, size_bytes=5),
                  replace(chosen, mtime_seconds=1.0)):
        refusal = checks.of_file(other, facts)
        assert refusal is not None
        assert refusal.reason == "changed"
    refusal = checks.of_file(replace(chosen, project=8), facts)
    assert refusal is not None
    assert refusal.reason == "project"


@pytest.mark.parametrize("wanted", [
    Layout((Component(0, PAGE, pool="flash"),)),
    Layout((Component(0, None),)),
    Layout((Component(0, PAGE, pool="flash"), Component(2 * PAGE, None, pool="hdd"))),
    replace(FLASH, mirror_count=2),
    of("raid0,released"),
    Layout((Component(0, PAGE, pattern="mdt"), Component(PAGE, None, pool="hdd"))),
], ids=["ends before the file", "no pool", "gap", "mirrors", "released", "onto the MDT"])
def test_layouts_no_file_should_get(wanted: Layout) -> None:
    lustre = MiniLustre()
    lustre.create("/a", bytes(PAGE + 1))
    refusal = checks.of_file(Move("/a", wanted), look(MiniCalls(lustre), "/a"))
    assert refusal is not None
    assert refusal.reason == "wanted-layout"


@pytest.mark.parametrize(("number", "result", "expected"), [
    (errno.ELOOP, Result.REFUSED, "not-a-file"), (errno.ENOKEY, Result.REFUSED, "encrypted"),
    (errno.ETXTBSY, Result.GAVE_WAY, "busy"), (errno.ENOENT, Result.GAVE_WAY, "gone"),
    (errno.ENOSPC, Result.FAILED, "no-space"), (errno.EROFS, Result.FAILED, "read-only"),
    (errno.EIO, Result.FAILED, "error"),
])
def test_errors_have_their_outcome(number: int, result: Result, expected: str) -> None:
    outcome = of_error(Move("/a", FLASH), of_errno(number, "open", "/a"))
    assert (outcome.result, outcome.reason) == (result, expected)


def room_reason(lustre: MiniLustre, wanted: Layout, quota: Callable[[int, int, str], Quota] | None = None) -> str:
    facts = look(MiniCalls(lustre), "/a")
    destination = Destination(lambda: lustre.pool_members, lustre.space, quota or lustre.quota)
    refusal = room.Batch(destination).refusal(Move("/a", wanted), facts)
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


def test_part_of_a_pool_stays_free(lustre: MiniLustre) -> None:
    lustre.room_bytes = 21 * PAGE  # 10 are taken, 10 more would fit, but then nothing would be left
    assert room_reason(lustre, FLASH) == ""
    lustre.room_bytes = 15 * PAGE
    assert room_reason(lustre, FLASH) == "room"


def test_a_pool_whose_targets_cannot_be_reached_has_no_room(lustre: MiniLustre) -> None:
    lustre.pool_members["flash"] = ("lustre-OST00ff",)
    assert room_reason(lustre, FLASH) == "room"


def test_needed_bytes_by_pool() -> None:
    assert room.needed(PFL, 10 * PAGE) == {"flash": 8 * PAGE, "hdd": 2 * PAGE}
    assert room.needed(PFL, PAGE) == {"flash": PAGE, "hdd": 0}


@pytest.mark.parametrize(("kind", "owner", "pool"), [(0, 1001, ""), (0, 1001, "flash"), (1, 1001, "flash"), (2, 7, "")])
def test_the_owners_quota_counts_though_root_may_exceed_it(
        lustre: MiniLustre, kind: int, owner: int, pool: str) -> None:
    lustre.quotas[kind, owner, pool] = Quota(used_bytes=PAGE, soft_limit_bytes=0, hard_limit_bytes=12 * PAGE)
    assert room_reason(lustre, FLASH) == ""
    lustre.quotas[kind, owner, pool] = Quota(used_bytes=PAGE, soft_limit_bytes=5 * PAGE, hard_limit_bytes=12 * PAGE)
    assert room_reason(lustre, FLASH) == "quota"


def test_no_quotas_and_quotas_that_cannot_be_read(lustre: MiniLustre) -> None:
    def fails(number: int) -> Callable[[int, int, str], Quota]:
        def quota(kind: int, owner: int, pool: str) -> Quota:
            raise of_errno(number, "quotactl")

        return quota

    assert room_reason(lustre, FLASH, fails(3)) == ""
    assert room_reason(lustre, FLASH, fails(5)) == "quota"


def refusals(lustre: MiniLustre, paths: list[str], wanted: Layout = FLASH) -> list[str]:
    """Reasons for files that are looked at together."""
    asked: list[tuple[int, int, str]] = []

    def quota(kind: int, owner: int, pool: str) -> Quota:
        asked.append((kind, owner, pool))
        return lustre.quota(kind, owner, pool)

    batch = room.Batch(Destination(lambda: lustre.pool_members, lustre.space, quota))
    found = [batch.refusal(Move(path, wanted), look(MiniCalls(lustre), path)) for path in paths]
    assert len(asked) == len(set(asked)), "each quota is asked for once a batch"
    return ["" if refusal is None else refusal.reason for refusal in found]


def test_files_of_a_batch_must_fit_together(lustre: MiniLustre) -> None:
    """Each of them fits alone: looked at one by one, all would go, and the pool would be full."""
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


def test_a_quota_that_not_every_target_has_told_is_not_known(lustre: MiniLustre) -> None:
    lustre.quotas[0, 1001, ""] = Quota(0, 0, 1 << 30, whole=False)
    assert refusals(lustre, ["/a"]) == ["quota"]
    lustre.quotas[0, 1001, ""] = Quota(0, 0, 0, whole=False)  # without a limit it does not matter
    assert refusals(lustre, ["/a"]) == [""]


def test_pools_and_room_are_read_once_a_batch(lustre: MiniLustre) -> None:
    asked: list[str] = []

    def pools() -> dict[str, tuple[str, ...]]:
        asked.append("pools")
        return lustre.pool_members

    def space() -> dict[str, Space]:
        asked.append("space")
        return lustre.space()

    batch = room.Batch(Destination(pools, space, lustre.quota))
    for _ in range(16):
        batch.refusal(Move("/a", FLASH), look(MiniCalls(lustre), "/a"))
    assert asked == ["pools", "space"]
