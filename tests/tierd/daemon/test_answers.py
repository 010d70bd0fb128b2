"""Numbers in answers of the control socket that JSON lacks. msgspec's own round trip needs no test."""

from __future__ import annotations

from pathlib import Path

from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.cli.control import finding_lines
from tierd.daemon.answers import FindingAnswer, FindingsAnswer, to_json
from tierd.daemon.client import ask
from tierd.daemon.control import ControlServer
from tierd.daemon.status import finding_answer
from tierd.model import Finding, SlowdownEvidence
from tierd.policies.registry import evidence_of
from tierd.text import Carrier


def test_no_json_has_an_infinite_number(tmp_path: Path) -> None:
    """A victim that stands still is slowed down infinitely."""
    evidence = SlowdownEvidence(victim_usual_bytes_per_second=66e6, victim_bytes_per_second=0.0,
                                slowdown=float("inf"), loss_low=0.9, loss_high=1.0, loss_probability=1.0,
                                carrier=Carrier.ARRIVAL)
    finding = Finding("shared-bandwidth", 1.0, "a.1", "v.2", ("lustre-OST0002",), "it stands still", evidence)
    answer = to_json(finding_answer(finding, 1))
    server = ControlServer(str(tmp_path / "s"), lambda _: answer)
    said = ask(str(tmp_path / "s"), {"request": "findings"})
    server.close()
    assert said["evidence"]["slowdown"] is None
    shown = FindingsAnswer((FindingAnswer.from_json(said),), looked=True)
    assert "    slowdown: infinite" in finding_lines(shown)
    journal = Journal(tmp_path / "journal.sqlite")
    number = journal.add_finding(finding)
    row = JournalReader(tmp_path / "journal.sqlite").finding(number)
    assert row is not None
    assert evidence_of(finding.kind, row[1].evidence.numbers()) == evidence
    journal.close()
