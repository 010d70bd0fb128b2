"""One alphabet of control characters in Python and C."""

import pytest

from lustre.formats import compiled
from lustre.formats.opcodes import Opcode


def test_python_and_c_give_the_control_characters_the_same_names_and_values() -> None:
    texts = pytest.importorskip("lustre.formats._texts")
    assert {one.name: one[0] for one in Opcode} == texts.OPCODES
    assert compiled.AVAILABLE


def test_the_control_characters_differ_and_are_none_of_the_kernels() -> None:
    assert len({*Opcode}) == len(Opcode.__members__)
    assert not {*Opcode} & {b"\t", b"\n", b"\r", b" "}
