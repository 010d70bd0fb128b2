"""Queries of a layout, and the ``lfs setstripe`` options for it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, StripeObject, explain, mirrors, pools_of, pools_within, same_shape
from lustre.layout.setstripe import setstripe_arguments
from lustre.layout.size import parse_size, size_text

M = 1 << 20
FLASH_FIRST = Layout((Component(0, 2 * M, pool="flash"), Component(2 * M, None, pool="hdd")))
ON_FLASH_BEHIND_MDT = Layout((Component(0, 65536, pattern="mdt", stripe_count=0), Component(65536, pool="flash")))
HDD_ON_MDT = Layout((Component(0, 65536, "hdd", pattern="mdt", stripe_count=0), Component(65536, pool="flash")))
"""Lustre 2.17 stores the directory's pool there, where it means nothing: ``pattern: mdt``, ``pool: hdd``."""


def plain(**fields: object) -> Layout:
    return Layout((Component(**fields),), composite=False)  # type: ignore[arg-type]


@given(st.integers(0, 1 << 62))
def test_sizes_survive_being_written(size_bytes: int) -> None:
    assert parse_size(size_text(size_bytes)) == size_bytes


@pytest.mark.parametrize("text", ["", "M", "2X", "-1", "2.5M", "٣M", "2 M", "0x10"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_size(text)


def test_pools() -> None:
    assert pools_of(FLASH_FIRST) == ("flash", "hdd")
    assert pools_within(FLASH_FIRST, 2 * M) == ("flash",)
    assert pools_within(FLASH_FIRST, 2 * M + 1) == ("flash", "hdd")
    assert pools_within(FLASH_FIRST, 0) == ("flash",)
    assert pools_within(plain(), 1) == ("",)
    assert pools_of(HDD_ON_MDT) == pools_within(HDD_ON_MDT, M) == ("flash",)


def test_an_extension_belongs_to_the_component_it_gives_room_to() -> None:
    growing = Layout((
        Component(0, 64 * M, pool="flash"),
        Component(64 * M, 512 * M, pool="flash", flags=("extension",), extension_size=64 * M),
        Component(512 * M, None, pool="hdd"),
    ))  # fmt: skip
    flash, room, hdd = growing.components
    grown = replace(growing, components=(replace(flash, extent_end=128 * M), replace(room, extent_start=128 * M), hdd))
    ((first, second),) = mirrors(growing)
    assert (first.extent_end, first.extension_size, second.extent_start) == (512 * M, 64 * M, 512 * M)
    assert same_shape(growing, grown)
    assert setstripe_arguments(growing) == setstripe_arguments(grown)


def mirrored(*numbers: int) -> Layout:
    return Layout(tuple(Component(mirror_id=number) for number in numbers), mirror_count=len(numbers))


OBJECTS = tuple(StripeObject(n, Fid(0x280000401 + n, 2)) for n in range(4))

SHAPES = [
    ("itself", FLASH_FIRST, FLASH_FIRST, True),
    ("size left open", plain(pool="hdd"), plain(pool="hdd", stripe_size=4 * M), True),
    ("count left open", plain(stripe_count=0), plain(stripe_count=3), True),
    ("another size", plain(stripe_size=M), plain(stripe_size=4 * M), False),
    ("another pool", plain(pool="hdd"), plain(pool="flash"), False),
    ("another count", plain(stripe_count=1), plain(stripe_count=2), False),
    ("every target, made", plain(stripe_count=-1), plain(stripe_count=4, objects=OBJECTS), True),
    ("every target, not made", plain(stripe_count=-1), plain(stripe_count=4), False),
    ("objects elsewhere", plain(objects=OBJECTS[:1]), plain(objects=OBJECTS[1:2]), True),
    ("requested OSTs, made", plain(stripe_count=2, ost_list=(1, 0)), plain(stripe_count=2, objects=OBJECTS[:2]), True),
    ("requested OSTs, elsewhere", plain(ost_list=(3,)), plain(objects=OBJECTS[:1]), False),
    ("requested OSTs, not made", plain(ost_list=(3,)), plain(), True),
    ("other requested OSTs", plain(ost_list=(3,)), plain(ost_list=(2,)), False),
    ("one component or none", plain(pool="hdd"), Layout((Component(pool="hdd"),)), True),
    ("fewer components", FLASH_FIRST, plain(pool="hdd"), False),
    ("released", plain(pattern="raid0,released"), plain(), True),
    ("overstriped", plain(pattern="raid0,overstriped", stripe_count=8), plain(stripe_count=8), False),
    ("another extent", FLASH_FIRST, Layout((Component(0, M, pool="flash"), Component(M, pool="hdd"))), False),
    ("stale", plain(flags=("init", "stale")), plain(flags=("init",)), True),
    ("a mirror more", mirrored(1, 2), mirrored(1), False),
    ("other mirror numbers", mirrored(1, 2), mirrored(3, 4), True),
    ("a pool on data on the MDT", ON_FLASH_BEHIND_MDT, HDD_ON_MDT, True),
    ("data on MDT", Layout((Component(0, 65536, pattern="mdt"), Component(65536))),
     Layout((Component(0, 65536, pattern="mdt", stripe_count=0, stripe_size=65536), Component(65536))), True),
]


@pytest.mark.parametrize(("a", "b", "same"), [pytest.param(a, b, same, id=name) for name, a, b, same in SHAPES])
def test_same_shape(a: Layout, b: Layout, same: bool) -> None:
    assert same_shape(a, b) is same
    assert same_shape(b, a) is same


@pytest.mark.parametrize(("layout", "arguments"), [
    (plain(pool="hdd", stripe_count=-1), "-c -1 -p hdd"),
    (plain(stripe_count=0, pool="flash"), "-p flash"),
    (plain(stripe_offset=3), "-c 1 -i 3"),
    (plain(stripe_offset=3, objects=OBJECTS[3:]), "-c 1"),
    (plain(pattern="raid0,overstriped", stripe_count=-2), "-C -2"),
    (plain(pattern="raid0,overstriped", stripe_count=3, ost_list=(1, 1, 2)), "-C 3 -o 1,1,2"),
    (plain(pattern="raid0,released", pool="hdd"), "-c 1 -p hdd"),
    (Layout((Component(0, M, pool="flash"), Component(M))), "-E 1M -c 1 -p flash -E -1 -c 1 -p ignore"),
    (HDD_ON_MDT, "-E 64K -L mdt -E -1 -c 1 -p flash"),
    (replace(HDD_ON_MDT, components=(HDD_ON_MDT.components[0], Component(65536))), "-E 64K -L mdt -E -1 -c 1"),
    (Layout((Component(mirror_id=1, flags=("prefer",), pool="flash"), Component(mirror_id=2, pool="hdd"))),
     "-N --flags=prefer -E -1 -c 1 -p flash -N -E -1 -c 1 -p hdd"),
])
def test_options(layout: Layout, arguments: str) -> None:
    assert " ".join(setstripe_arguments(layout)) == arguments


@pytest.mark.parametrize(("layout", "problem"), [
    (Layout(()), "without components"),
    (Layout((Component(0, 1000), Component(1000))), "component end 1000 is not a multiple of 64K"),
    (plain(stripe_size=4096), "stripe size 4096"),
    (Layout((Component(0, M), Component(2 * M))), "does not begin where the one before ends"),
    (Layout((Component(0, M, stripe_count=2), Component(M, stripe_count=0))), "stripe count cannot go back"),
    (Layout((Component(0, M, stripe_size=M), Component(M))), "stripe size cannot go back"),
    (Layout((Component(0, M), Component(M, pattern="mdt"))), "first component only"),
    (plain(pattern="parity"), "no option for the pattern 'parity'"),
    (plain(pattern="raid0,compress"), "no option"),
])
def test_a_layout_without_lfs_options_is_refused(layout: Layout, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        setstripe_arguments(layout)


def test_explained() -> None:
    assert explain(plain(pattern="raid0,released")) == "whole file on any OST (1 stripe, released to the archive)"
    assert explain(plain(stripe_count=0, stripe_size=M)) == "whole file on any OST (default stripes of 1M)"
