"""``import``: what the C module reads of a form is what the reference parser reads of the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import compiled, import_
from tests.conftest import Unpack
from tests.damaged import any_text, damage, damaged, renumbered, renumbering, texts

if not compiled.AVAILABLE:
    pytest.skip("the modules in C were not built: no compiler, or no Python.h", allow_module_level=True)

TREES = [f"2.17.57/tree-{name}" for name in ("idle", "load-1", "load-2")]


def test_recorded_imports_have_few_forms_and_are_read_in_the_same_way(capture: Unpack) -> None:
    known = [text for tree in TREES for text in texts(capture(tree), "import")]
    forms, found = import_.import_forms(), set()
    for text in known:
        link, form = import_.watched(text, forms, None)
        assert link == import_.parse(text)
        assert form is not None
        found.add(form)
    assert 0 < len(found) < len(known) / 4


@any_text
@given(
    st.integers(0, 99), st.integers(0, 99), st.lists(damage, max_size=3), renumbering, st.integers(1, 9),
    st.integers(0, 5000),
)  # fmt: skip
def test_imports_of_a_form_are_read_in_the_same_way(capture, first, second, damages, numbers, every, cut) -> None:
    known = texts(capture(TREES[1]), "import")
    before, text = known[first % len(known)], known[second % len(known)]
    forms = import_.import_forms()
    _, like = import_.watched(before, forms, None)
    for changed in (
        text, renumbered(text, numbers, every), text.replace(b"usecs", b"0 usecs"), text[:cut], text + text,
        text.replace(b"FULL", b"IDLE"), *(damaged(text, *one) for one in damages),
    ):  # fmt: skip
        expected = import_.parse(changed)
        for form in (like, None):
            assert import_.watched(changed, forms, form)[0] == expected
