"""The striping of directories: what Lustre 2.17 recorded, any bytes, and any text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.layout.directory import (
    DefaultStriping,
    DirectoryStripes,
    default_of_xattr,
    default_of_yaml,
    hash_number,
    hash_text,
    setdirstripe_arguments,
    stripes_of_xattr,
    stripes_of_yaml,
    to_xattr,
)

RECORDED = sorted((Path(__file__).parents[2] / "captures/2.17.57/directories").glob("lmv-*.txt"))


def answers(path: Path) -> dict[str, str]:
    """What each command printed, by its options: ``-y``, ``-D -y``, and the attributes."""
    found = {}
    for part in path.read_text().split("$ ")[1:]:
        command, _, rest = part.partition("\n")
        found[re.sub(r" ?/mnt\S+|lfs getdirstripe ?", "", command)] = rest.partition("# exit")[0]
    return found


def attribute(text: str, name: str) -> bytes | None:
    found = re.search(rf"^{name}=0x([0-9a-f]+)$", text, re.MULTILINE)
    return bytes.fromhex(found[1]) if found else None


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_attribute_and_what_lfs_printed_agree(path: Path) -> None:
    said = answers(path)
    data = attribute(said["getfattr -h -d -m - -e hex"], "trusted.lmv")
    printed = stripes_of_yaml(said["-y"])
    if data is None:
        assert (printed.stripe_count, printed.is_striped, printed.hash_type) == (0, False, "none")
        assert printed.mdt_index in {0, 1}
    else:
        assert stripes_of_xattr(data) == replace(printed, mdt_indices=())
        assert len(printed.mdt_indices) == printed.stripe_count == 2
    own = attribute(said["getfattr -h -d -m - -e hex"], "trusted.dmv")
    shown = default_of_yaml(said["-D -y"])
    if own is not None:
        assert default_of_xattr(own) == shown
        assert to_xattr(shown) == own
    else:
        assert shown.stripe_count <= 2, "what it inherits"


def test_there_are_recordings_of_each_form() -> None:
    assert len(RECORDED) == 8


@given(st.binary(max_size=200))
def test_any_bytes_are_stripes_or_refused(data: bytes) -> None:
    for magic in (b"", bytes.fromhex("d00cd20c"), bytes.fromhex("d00cd30c")):
        for parse in (stripes_of_xattr, default_of_xattr):
            try:
                found = parse(magic + data)
            except ValueError as error:
                assert "directory striping" in str(error)  # noqa: PT017 -- either outcome is right
            else:
                assert isinstance(found, DirectoryStripes | DefaultStriping)


defaults = st.builds(DefaultStriping, st.integers(-5, 2000), st.integers(-1, 65535),
                     st.sampled_from(["none", "crush", "fnv_1a_64", "crush2", "all_chars", "crush,fixed"]),
                     st.integers(-1, 250), st.integers(-1, 250), st.from_regex(r"|[a-z]{1,15}", fullmatch=True))


@given(defaults)
def test_a_default_survives_both_forms(default: DefaultStriping) -> None:
    assert default_of_xattr(to_xattr(default)) == default
    text = (f"lmv_stripe_count:  {default.stripe_count}\nlmv_stripe_offset: {default.mdt_index}\n"
            f"lmv_hash_type:     {default.hash_type}\nlmv_max_inherit:   {default.max_inherit}\n"
            f"lmv_max_inherit_rr: {default.max_inherit_rr}\n")
    assert default_of_yaml(text) == replace(default, pool="")


@given(st.integers(0, (1 << 32) - 1))
def test_a_hash_survives_its_text(number: int) -> None:
    assert hash_number(hash_text(number)) == number


@given(st.text(max_size=200))
def test_any_text_is_stripes_or_refused(text: str) -> None:
    for parse in (stripes_of_yaml, default_of_yaml):
        try:
            parse(text)
        except ValueError as error:
            assert str(error)  # noqa: PT017


def test_flags_show_a_migration() -> None:
    assert DirectoryStripes(2, 0, "fnv_1a_64,migrating").is_changing
    assert not DirectoryStripes(2, 0, "fnv_1a_64,fixed").is_changing


@pytest.mark.parametrize("bad", [
    DefaultStriping(5000), DefaultStriping(1, 1 << 20), DefaultStriping(1, -1, "none", 300),
    DefaultStriping(pool="a" * 16), DefaultStriping(1, -1, "odd")])
def test_what_lustre_cannot_have_is_refused(bad: DefaultStriping) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- several sentences
        to_xattr(bad)


def test_the_options_of_lfs() -> None:
    assert setdirstripe_arguments(DefaultStriping(2, 1, "fnv_1a_64,fixed", -1, 3)) == (
        "-D", "-c", "2", "-i", "1", "-H", "fnv_1a_64", "--max-inherit", "-1", "--max-inherit-rr", "3")
