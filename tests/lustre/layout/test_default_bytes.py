"""Defaults in binary form: what is written is read as what was meant, and as Lustre itself writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import EOF, Component, Foreign, Layout, StripeObject
from lustre.layout.xattr import from_xattr, of_new_file, to_bytes, without_rest
from tests.lustre.llapi.test_layouts import FLASH

MIB = 1 << 20
POOLS = st.sampled_from(["", "flash", "fifteen-letters"])
COUNTS = st.sampled_from([-1, 0, 1, 4, 2000])
SIZES = st.sampled_from([0, 65536, 4 * MIB])


@st.composite
def defaults(draw: st.DrawFn) -> Layout:
    if draw(st.booleans()):
        return Layout((Component(pool=draw(POOLS), stripe_count=draw(COUNTS), stripe_size=draw(SIZES)),),
                      composite=False)
    ends = [*sorted(draw(st.sets(st.integers(1, 64).map(lambda n: n * MIB), max_size=4))), EOF]
    components: list[Component] = []
    for end in ends:
        start = components[-1].extent_end or 0 if components else 0
        pattern = draw(st.sampled_from(["raid0", "raid0,overstriped"]))
        components.append(Component(start, end, draw(POOLS), draw(COUNTS), draw(SIZES), pattern=pattern))
    if len(components) > 1 and draw(st.booleans()):
        components[0] = Component(0, components[0].extent_end, stripe_count=0, stripe_size=MIB, pattern="mdt")
    return Layout(tuple(components))


@given(defaults())
def test_read_as_it_was_meant(layout: Layout) -> None:
    assert from_xattr(to_bytes(layout)) == layout
    assert without_rest(to_bytes(layout) + bytes(1000)) == to_bytes(layout)


def test_the_same_bytes_as_lustre() -> None:
    assert to_bytes(from_xattr(FLASH)) == FLASH


@given(defaults())
def test_no_component_on_osts_is_in_the_form_that_keeps_the_present_pool(layout: Layout) -> None:
    data, older = to_bytes(layout), (0xBD10BD0).to_bytes(4, "little")
    assert data.count(older) == sum(component.on_mdt for component in layout.components)


def test_a_new_file_gets_the_bytes_of_a_default_where_all_its_data_is_on_osts_that_lustre_chooses() -> None:
    plain = Layout((Component(pool="flash"),), composite=False)
    assert of_new_file(plain) == to_bytes(plain)
    for component in (Component(pattern="mdt", extent_end=MIB), Component(ost_list=(3,)), Component(flags=("prefer",))):
        assert of_new_file(Layout((component,))) is None, component
    assert of_new_file(Layout((Component(mirror_id=1), Component(mirror_id=2)), mirror_count=2)) is None


def test_mirrors_of_a_default_layout_get_numbers() -> None:
    two = Layout((Component(0, MIB, "flash", mirror_id=1), Component(MIB, EOF, "hdd", mirror_id=1),
                  Component(0, EOF, "hdd", mirror_id=2)), mirror_count=2)
    assert from_xattr(to_bytes(two)) == two


@pytest.mark.parametrize(("component", "problem"), [
    (Component(stripe_offset=3), "names OSTs"),
    (Component(objects=(StripeObject(3, Fid(0, 0)),)), "names OSTs"),
    (Component(pattern="parity"), "pattern 'parity'"),
    (Component(pattern="foreign", foreign=Foreign(b"x")), "pattern 'foreign'"),
    (Component(flags=("stale",)), "flags stale"),
])
def test_a_component_that_no_default_can_have_is_refused(component: Component, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        to_bytes(Layout((component,)))


def test_a_list_of_osts_belongs_to_the_default() -> None:
    two = bytes.fromhex("d00bd50b01000000" + "00" * 16 + "00000000" + "0200" + "ffff" + "00" * 16)
    objects = b"".join(bytes(20) + bytes([index, 0, 0, 0]) for index in (2, 5))
    found = from_xattr(without_rest(two + objects + bytes(1 << 17)))
    assert [one.ost_index for one in found.components[0].objects] == [2, 5]
