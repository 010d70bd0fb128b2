"""What is seen on recordings of a real file system beside who slows whom."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tierd.config import Settings
from tierd.replay.report import as_json, as_text
from tierd.replay.run import replay
from tierd.sense.tape import opened


@pytest.mark.parametrize(("name", "kinds"), [
    ("noisy-random-4k", ["small-random-io"]), ("noisy-flash-too-small", ["outgrown-component"]),
    ("control-flash-covers", []), ("control-quiet", [])])
def test_what_a_recording_shows_besides(name: str, kinds: list[str], tape: Callable[[str], Path]) -> None:
    with opened(tape(name)) as recorded:
        report = replay(recorded, Settings())
    assert [finding.kind for finding in report.advice] == kinds
    assert not {f.kind for f in report.findings} & set(kinds)
    told = json.loads(as_json(report))
    assert [entry["kind"] for entry in told["advice"]] == kinds
    assert as_text(report).count("Seen too: ") == len(kinds)
    if name == "noisy-flash-too-small":
        (outgrown,) = report.advice
        assert outgrown.directories == ("/proj/ingest_pfl128k",)
        assert outgrown.evidence["component_bytes"] == 128 << 10
