"""``tierctl layout --lov`` on whatever bytes were saved to a file: an answer or a reason, and nothing that disturbs."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tierd.cli.tierctl import main

RECORDED = Path(__file__).parents[2] / "captures" / "2.17.57" / "layouts"
RAW = [bytes.fromhex(found[1]) for path in sorted(RECORDED.glob("*.hex"))
       if (found := re.search(r"0x([0-9a-f]+)", path.read_text()))]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A recorded layout with a few bytes changed, perhaps cut short; raw, or as getfattr prints it."""
    data = bytearray(draw(st.sampled_from(RAW)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    whole = bytes(data[: draw(st.none() | st.integers(0, len(data)))])
    form = draw(st.sampled_from((b"%s", b"0x%s\n", b"# file: x\nlustre.lov=0x%s\n", None)))
    return whole if form is None else form % whole.hex().encode()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lov") / "file"


@given(data=mutated() | st.binary(max_size=300), form=st.sampled_from(([], ["--json"], ["--yaml"])))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_an_answer_or_a_reason(place: Path, data: bytes, form: list[str]) -> None:
    place.write_bytes(data)
    answer, words = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(words):
        code = main(["layout", "--lov", str(place), *form])
    assert code == (0 if answer.getvalue().strip() else 1)
    assert bool(words.getvalue()) == bool(code)
    assert (answer.getvalue() + words.getvalue()).replace("\n", "").isprintable()


def test_a_foreign_value_that_would_clear_the_screen(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = next(raw for raw in RAW if raw[:4] == bytes.fromhex("d00bd70b"))
    place.write_bytes(foreign[:-4] + b"\x1b[2J")
    assert main(["layout", "--lov", str(place)]) == 0
    assert "\\x1b[2J" in capsys.readouterr().out
    assert main(["layout", "--lov", str(place), "--yaml"]) == 1
    assert "--json" in capsys.readouterr().err
