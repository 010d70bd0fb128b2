"""The striping of directories: what Lustre 2.17 recorded, any bytes, and any text."""

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
    default_to_yaml,
    hash_number,
    hash_text,
    stripes_of_xattr,
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
    printed = dict(re.findall(r"^(\w+): +(\S+)$", said["-y"], re.MULTILINE))
    if data is None:
        assert (printed["lmv_stripe_count"], printed["lmv_hash_type"]) == ("0", "none")
    else:
        stripes = stripes_of_xattr(data)
        assert str(stripes.stripe_count) == printed["lmv_stripe_count"] == "2"
        assert str(stripes.mdt_index) == printed["lmv_stripe_offset"]
        assert stripes.hash_type == printed["lmv_hash_type"]
    own = attribute(said["getfattr -h -d -m - -e hex"], "trusted.dmv")
    shown = default_of_yaml(said["-D -y"])
    if own is not None:
        assert default_of_xattr(own) == shown
        assert to_xattr(shown) == own
    else:
        assert shown.stripe_count <= 2, "what it inherits"


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
    text = default_to_yaml(default)
    assert default_of_yaml(text) == replace(default, pool="")


@given(st.integers(0, (1 << 32) - 1))
def test_a_hash_survives_its_text(number: int) -> None:
    assert hash_number(hash_text(number)) == number


@given(st.text(max_size=200))
def test_any_text_is_a_default_or_refused(text: str) -> None:
    try:
        default_of_yaml(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.parametrize("bad", [
    DefaultStriping(5000), DefaultStriping(1, 1 << 20), DefaultStriping(1, -1, "none", 300),
    DefaultStriping(pool="a" * 16), DefaultStriping(1, -1, "odd")])
def test_an_impossible_striping_is_refused(bad: DefaultStriping) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- several sentences
        to_xattr(bad)
