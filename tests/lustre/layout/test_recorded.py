"""Every recorded layout: the extended attributes and what ``lfs getstripe -y`` printed say the same."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Foreign, Layout, explain, same_shape
from lustre.layout.setstripe import setstripe_arguments
from lustre.layout.xattr import from_xattr
from lustre.layout.yaml import from_yaml, to_yaml

LAYOUTS = Path(__file__).parent.parent.parent / "captures" / "2.17.57" / "layouts"

WITHOUT_LAYOUT = {"fifo", "symlink", "dir-default", "dir-mdt1"}
DIRECTORIES = {"dir-pool"}


def names() -> list[str]:
    return sorted(path.name.removesuffix(".lustre.lov.hex") for path in LAYOUTS.glob("*.lustre.lov.hex"))


FILES = [name for name in names() if name not in WITHOUT_LAYOUT | DIRECTORIES]


def printed(name: str) -> str:
    return (LAYOUTS / f"{name}.getstripe-y.yaml").read_text(encoding="utf-8")


def attribute(name: str, which: str = "lustre") -> bytes:
    lines = (LAYOUTS / f"{name}.{which}.lov.hex").read_text(encoding="utf-8").splitlines()
    (value,) = [line.split("=0x")[1] for line in lines if line.startswith(f"{which}.lov=")]
    return bytes.fromhex(value)


def with_mdt(layout: Layout) -> Layout:
    """The attribute does not name the MDT of the data; every recorded file was on the first."""
    components = (replace(c, mdt_index=0) if c.on_mdt else c for c in layout.components)
    return replace(layout, components=tuple(components))


@pytest.mark.parametrize("name", FILES)
def test_the_attribute_and_the_text_of_lfs_print_that_text(name: str) -> None:
    assert to_yaml(with_mdt(from_xattr(attribute(name)))) == to_yaml(from_yaml(printed(name))) == printed(name)


def test_the_text_of_a_foreign_layout_omits_its_type() -> None:
    stored = from_xattr(attribute("foreign")).components[0].foreign
    assert stored == Foreign(b"0@foreign-value", kind=0, flags=0xDA05)
    assert from_yaml(printed("foreign")).components[0].foreign == Foreign(b"0@foreign-value")


def test_the_text_of_a_directory_resolves_defaults() -> None:
    stored, shown = from_xattr(attribute("dir-pool")), from_yaml(printed("dir-pool"))
    assert (stored.components[0].stripe_count, stored.components[0].stripe_size) == (0, 0)
    assert replace(stored.components[0], stripe_count=1, stripe_size=4194304) == shown.components[0]
    assert same_shape(stored, shown)


@pytest.mark.parametrize(("name", "problem"), [
    ("dir-mdt1", "line 5: stripe_count appears twice"),
    ("fifo", "line 1: not a key and a value: 'fifo has no stripe info'"),
    ("symlink", "line 1: not a key and a value: 'symlink has no stripe info'"),
])
def test_an_invalid_layout_is_refused(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        from_yaml(printed(name))


@pytest.mark.parametrize(("name", "options", "sentence"), [
    ("c1-flash", "-c 1 -S 4M -p flash", "whole file on flash (1 stripe)"),
    ("plain-default", "-c 1 -S 4M", "whole file on any OST (1 stripe)"),
    ("pfl2", "-E 1M -c 1 -S 1M -p flash -E -1 -c 4 -S 4M -p hdd",
     "first 1M on flash (1 stripe), rest on hdd (4 stripes of 4M)"),
    ("dir-pfl_inherit", "-E 1M -c 1 -S 1M -p flash -E -1 -c -1 -S 4M -p hdd",
     "first 1M on flash (1 stripe), rest on hdd (stripes of 4M on every OST)"),
    ("dom", "-E 64K -L mdt -E -1 -c 1 -S 4M -p flash", "first 64K on the MDT, rest on flash (1 stripe)"),
    ("overstripe", "-C 8 -S 4M -p flash", "whole file on flash (8 stripes of 4M, overstriped)"),
    ("sel", "-E 512M -c 1 -S 4M -z 64M -p flash -E -1 -c 2 -S 4M -p hdd",
     "first 512M on flash (1 stripe, grows by 64M), rest on hdd (2 stripes of 4M)"),
    ("flr-stale", "-N -E -1 -c 1 -S 4M -p flash -N -E -1 -c 1 -S 4M -p hdd",
     "mirror 1: whole file on flash (1 stripe); mirror 2, stale: whole file on hdd (1 stripe)"),
    ("foreign", "--foreign=0 --flags=0xda05 --xattr=0@foreign-value", "foreign layout of 15 bytes"),
])
def test_a_layout_has_the_options_that_made_it_and_a_sentence(name: str, options: str, sentence: str) -> None:
    """The options are those of 00-commands.txt beside the recordings."""
    layout = from_xattr(attribute(name))
    assert (" ".join(setstripe_arguments(layout)), explain(layout)) == (options, sentence)


@pytest.mark.parametrize(("name", "state"), [("flr2", "ro"), ("flr-stale", "wp"), ("pfl2", "")])
def test_state_of_the_mirrors(name: str, state: str) -> None:
    assert from_xattr(attribute(name)).state == state


@pytest.mark.parametrize("name", FILES)
def test_an_attribute_cut_short_is_refused(name: str) -> None:
    """But for a plain one without its objects, which reads like a default."""
    data, layout = attribute(name), from_xattr(attribute(name))
    is_plain = not layout.composite and name != "foreign"
    defaults = {len(data) - 24 * len(layout.components[0].objects)} if is_plain else set()
    assert all(from_xattr(data[:end]).components[0].objects == () for end in defaults)
    for end in {*range(len(data))} - defaults:
        with pytest.raises(ValueError, match=r"layout: .* byte \d+"):
            from_xattr(data[:end])


@pytest.mark.parametrize(("indices", "requested"), [((4, 2), (4, 2)), ((0xFFFFFFFF, 0xFFFFFFFF), ())])
def test_osts_that_a_component_without_objects_requests_are_no_objects(indices: tuple[int, ...],
                                                                       requested: tuple[int, ...]) -> None:
    """As ``lfs setstripe -E … -o 4,2`` leaves them in a component that is not written yet (lod_gen_component_ea)."""
    data = bytearray(attribute("sel", "trusted"))
    slots = b"".join(struct.pack("<QQII", 0, 0, 0, index) for index in indices)
    struct.pack_into("<I", data, 4, len(data) + len(slots))
    size_at = 32 + 48 * 2 + 28  # of the third component, which is the last part
    struct.pack_into("<I", data, size_at, 48 + len(slots))
    last = from_xattr(bytes(data) + slots).components[-1]
    assert last == replace(from_xattr(attribute("sel", "trusted")).components[-1], ost_list=requested)
