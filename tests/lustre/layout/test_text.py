"""Text and binary form of any layout, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Foreign, Layout, StripeObject
from lustre.layout.xattr import from_xattr
from lustre.layout.yaml import from_yaml, to_yaml

U16, U32, U48, U64 = ((1 << bits) - 1 for bits in (16, 32, 48, 64))

fids = st.builds(Fid, st.integers(0, U64), st.integers(0, U32), st.integers(0, U32))
objects = st.builds(StripeObject, st.integers(0, U16), fids.filter(any))
pools = st.from_regex(r"|[A-Za-z][A-Za-z0-9_.-]{0,14}", fullmatch=True)


@st.composite
def components(draw: st.DrawFn, composite: bool) -> Component:
    flags = ("init", "stale", "prefer", "offline", "nosync", "extension", "parity", "0x1000")
    chosen = tuple(draw(st.lists(st.sampled_from(flags), unique=True))) if composite else ()
    pattern = draw(st.sampled_from(("raid0", "mdt", "raid0,overstriped", "raid0,released", "unknown_40")))
    extension = "extension" in chosen
    made = tuple(draw(st.lists(objects, max_size=3)))
    return Component(
        extent_start=draw(st.integers(0, U64 - 1)) if composite else 0,
        extent_end=draw(st.none() | st.integers(0, U64 - 1)) if composite else None,
        pool=draw(pools),
        stripe_count=draw(st.integers(-32, 2000)),
        stripe_size=0 if extension else draw(st.integers(0, U32)),
        extension_size=draw(st.integers(0, U32 << 10)) if extension else 0,
        stripe_offset=-1 if pattern == "mdt" else draw(st.integers(-1, U16)),
        mdt_index=draw(st.integers(-1, U16)) if pattern == "mdt" else -1,
        pattern=pattern,
        flags=chosen,
        component_id=draw(st.integers(1, U32)) if composite else 0,
        mirror_id=draw(st.integers(0, 0x7FFF)) if composite else 0,
        mirror_link_id=draw(st.integers(0, U16)) if composite else 0,
        timestamp=draw(st.integers(0, U48)) if composite else 0,
        data_stripes=draw(st.integers(0, 255)) if "parity" in chosen else 0,
        parity_stripes=draw(st.integers(0, 255)) if "parity" in chosen else 0,
        objects=made,
        ost_list=() if made else tuple(draw(st.lists(st.integers(0, U16), max_size=3))),
    )


generations = st.integers(0, U32)
composites = st.builds(Layout, st.lists(components(composite=True), min_size=1, max_size=4).map(tuple),
                       generation=generations, mirror_count=st.integers(1, U16))
plains = st.builds(Layout, st.tuples(components(composite=False)), generation=generations, composite=st.just(False))


@given(composites | plains)
def test_text_round_trip(layout: Layout) -> None:
    assert from_yaml(to_yaml(layout)) == layout


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
def test_foreign_text_round_trip(value: str) -> None:
    foreign = Foreign(value.encode(errors="surrogatepass"))
    layout = Layout((Component(pattern="foreign", stripe_count=0, foreign=foreign),), composite=False)
    assert from_yaml(to_yaml(layout)) == layout


@given(composites | plains, st.data())
def test_text_with_a_line_destroyed_is_a_layout_or_refused(layout: Layout, data: st.DataObject) -> None:
    lines = to_yaml(layout).splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = data.draw(st.text(max_size=20))
    try:
        from_yaml("".join(lines))
    except ValueError as error:
        assert str(error).startswith("layout")  # noqa: PT017 - either outcome is right, a nameless error is not


@pytest.mark.parametrize(("text", "problem"), [
    ("", "no components"),
    ("lmm_stripe_count:  many\n", "line 1: not a number: 'many'"),
    ("lmm_stripe_count:  1\nlmm_stripe_cuont:  1\n", "line 2: unknown key 'stripe_cuont'"),
    ("lmm_stripe_count:  1\nlmm_stripe_count:  2\n", "line 2: stripe_count appears twice"),
    ("lcm_entry_count:   2\ncomponents:\n  - lcme_id: 1\n", "1 components, but lcm_entry_count is 2"),
    ("lmm_stripe_count: 1\nlmm_objects:\n - l_fid: 0x1:0x2:0x0\n", "line 3: an object without its OST"),
    ("lmm_stripe_count: 1\nlmm_objects:\n - l_ost_idx: 1\n   l_fid: 12\n", "line 4: not a FID: '12'"),
    (" - l_ost_idx: 1\n", "line 1: an object before any component"),
])
def test_text_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        from_yaml(text)


def test_text_of_a_template() -> None:
    template = "# for small files\nstripe_count:  1\nstripe_size: 1048576\npattern:\nstripe_offset: -1\n"
    assert from_yaml(template) == Layout((Component(stripe_size=1048576),), composite=False)


def test_text_of_mixed_foreign_components_does_not_exist() -> None:
    layout = Layout((Component(pattern="foreign", foreign=Foreign(b"x")), Component()))
    with pytest.raises(ValueError, match="no text form"):
        to_yaml(layout)


MAGICS = [magic.to_bytes(4, "little") for magic in (0xBD10BD0, 0xBD30BD0, 0xBD50BD0, 0xBD60BD0, 0xBD70BD0, 0xBD80BD0)]


@given(st.sampled_from([b"", *MAGICS]), st.binary(max_size=300))
def test_binary_junk_is_a_layout_or_refused_by_name(magic: bytes, data: bytes) -> None:
    try:
        from_xattr(magic + data)
    except ValueError as error:
        assert re.match(r"layout: .*byte", str(error))  # noqa: PT017 - either outcome is right, a nameless error is not


def test_an_object_of_the_oldest_numbering() -> None:
    head = bytes.fromhex("d00bd10b01000000") + bytes(16) + bytes.fromhex("0000100001000000")
    one = (0x1_0000_0007).to_bytes(8, "little") + bytes(8) + bytes(4) + (3).to_bytes(4, "little")
    (component,) = from_xattr(head + one).components
    assert component.objects == (StripeObject(3, Fid(0x100030001, 7)),)
    assert component.stripe_offset == 3


def test_generation_where_the_client_does_not_hide_it() -> None:
    head = bytes.fromhex("d00bd10b01000000") + bytes(16) + bytes.fromhex("0000100001000500")
    one = Fid(0x280000401, 7).pack() + bytes(8)
    assert from_xattr(head + one).generation == 5
    assert from_xattr(head).components[0].stripe_offset == 5
