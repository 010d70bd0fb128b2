"""Every kind of file that tierd does not move, with the reason."""

import errno
import stat
from collections.abc import Callable
from dataclasses import replace

import pytest

from lustre.errors import of_errno
from lustre.fid import Fid
from lustre.filesystem import FileFlags, Hsm, HsmFlags
from lustre.layout.model import Component, Foreign, Layout
from tests.tierd.act.movers.minicalls import MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, PAGE, MiniLustre, Node
from tierd.act.movers import checks
from tierd.act.movers.checks import read_facts
from tierd.act.movers.moves import Move, MoveResult, outcome_of_error

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
