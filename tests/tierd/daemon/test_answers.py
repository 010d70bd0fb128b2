"""Answers of the control socket survive the way through JSON."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.cli.control import finding_lines
from tierd.daemon.answers import (
    ExplainAnswer,
    FindingAnswer,
    FindingsAnswer,
    HistoryAnswer,
    OrderAnswer,
    ReadersAnswer,
    ReportAnswer,
    StatusAnswer,
    UndoAnswer,
    UndoFindingAnswer,
    to_json,
)
from tierd.daemon.client import ask
from tierd.daemon.control import ControlServer
from tierd.daemon.status import finding_answer
from tierd.model import Finding, SlowdownEvidence
from tierd.policies.registry import evidence_of
from tierd.structs import Struct
from tierd.text import Carrier

CLASSES: list[type[Struct]] = [
    StatusAnswer, FindingsAnswer, HistoryAnswer, ExplainAnswer, OrderAnswer, UndoAnswer,
    UndoFindingAnswer, ReportAnswer, ReadersAnswer]  # fmt: skip


def any_of(cls: type[Struct]) -> st.SearchStrategy[Struct]:
    """Structs of a class with any values."""
    return st.builds(cls, **{each.name: st.from_type(each.type) for each in msgspec.structs.fields(cls)})


def register(base: type[Struct]) -> None:
    for struct in base.__subclasses__():
        st.register_type_strategy(struct, any_of)
        register(struct)


register(Struct)


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])  # nested answers
def test_an_answer_is_the_same_after_json(cls: type[Struct], data: st.DataObject) -> None:
    st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
    st.register_type_strategy(str, st.text(max_size=6))  # long texts make nested answers too large for Hypothesis
    answer = data.draw(any_of(cls))
    assert cls.from_json(json.loads(json.dumps(to_json(answer)))) == answer


@pytest.mark.parametrize(("data", "words"), [
    ([], "Expected `object`"), ({}, "missing required field `findings`"), ({"findings": 1, "looked": True}, "`array`"),
    ({"findings": [None], "looked": True}, "Expected `object`")])
def test_a_malformed_answer_is_refused(data: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        FindingsAnswer.from_json(data)


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
