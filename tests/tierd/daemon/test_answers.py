"""Answers of the control socket survive the way through JSON, also between two releases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tierd.site import Site
from tests.tierd.site import reading as reading
from tests.tierd.site import site as site
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.carrier import Carrier
from tierd.cli.control import finding_lines
from tierd.daemon import answers
from tierd.daemon.answers import (
    ExplainAnswer,
    FindingAnswer,
    FindingsAnswer,
    HistoryAnswer,
    OrderAnswer,
    PlanAnswer,
    ReadersAnswer,
    RemediationAnswer,
    ReportAnswer,
    StatusAnswer,
    TopAnswer,
    UndoAnswer,
    UndoFindingAnswer,
    from_json,
    to_json,
    undo_from_json,
)
from tierd.daemon.client import ask
from tierd.daemon.control import ControlServer
from tierd.daemon.status import finding_answer
from tierd.model import Finding, SlowdownEvidence
from tierd.policies.registry import evidence_of
from tierd.structs import Struct

CLASSES: list[type[Struct]] = [
    StatusAnswer, TopAnswer, FindingsAnswer, HistoryAnswer, PlanAnswer, ExplainAnswer, OrderAnswer, UndoAnswer,
    UndoFindingAnswer, ReportAnswer, ReadersAnswer]  # fmt: skip


def any_of(cls: type[Struct]) -> st.SearchStrategy[Struct]:
    """Structs of a class with any values."""
    return st.builds(cls, **{name: st.from_type(answers._type_of(kind, cls.__module__))  # type: ignore[arg-type]
                             for name, kind in cls.field_types.items()})


for struct in {struct for base in (Struct, *Struct.__subclasses__(), answers.StateAnswer)
               for struct in base.__subclasses__()}:
    st.register_type_strategy(struct, any_of)


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])  # nested answers
def test_an_answer_is_the_same_after_json(cls: type[Struct], data: st.DataObject) -> None:
    st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
    st.register_type_strategy(str, st.text(max_size=6))  # long texts make nested answers too large for Hypothesis
    answer = data.draw(any_of(cls))
    assert from_json(cls, json.loads(json.dumps(to_json(answer)))) == answer


def test_the_keys_of_json_stay_those_of_earlier_releases(reading: Site) -> None:
    status = to_json(reading.service._handler({"request": "status"}))
    assert {"cases", "left_over_moves", "not_kept_moves", "not_taken_up", "finding_ids", "why_not"} <= set(status)
    (case,) = status["cases"]  # type: ignore[misc, attr-defined]
    assert set(case) == {"finding", "aggressor", "victim", "since", "state", "judged", "verdict", "directories",
                         "waiting_defaults", "waiting_moves", "moves_held", "taking_back"}
    explained = to_json(reading.service._handler({"request": "explain", "id": "F1"}))
    assert {"finding", "holds", "ordered", "advice", "acts", "all_acts", "files_moved", "bytes_moved", "outcomes",
            "told", "judgements", "same", "users"} == set(explained)
    (finding,) = to_json(reading.service._handler({"request": "findings"}))["findings"]  # type: ignore[misc, attr-defined]
    assert {"id", "kind", "t", "aggressor", "victim", "targets", "directories", "advice_only", "subject", "advice",
            "evidence"} == set(finding)


def test_a_later_release_may_add_keys_and_an_earlier_one_lack_some() -> None:
    earlier = {"finding": 1, "aggressor": "a", "victim": "v", "since": 0.0, "judged": True, "verdict": "helped",
               "directories": [], "waiting_defaults": 0, "waiting_moves": 0, "moves_held": False}
    assert from_json(RemediationAnswer, earlier).state == ""
    assert from_json(RemediationAnswer, {**earlier, "state": "kept", "colour": "red"}).state == "kept"


@pytest.mark.parametrize(("data", "words"), [
    ([], "no JSON object"), ({}, "findings is missing"), ({"findings": 1, "looked": True}, "a list is expected"),
    ({"findings": [None], "looked": True}, "no JSON object")])  # fmt: skip
def test_what_is_no_answer_is_refused(data: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_json(FindingsAnswer, data)


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
    assert said["evidence"]["slowdown"] is None  # type: ignore[index]
    shown = FindingsAnswer((from_json(FindingAnswer, said),), looked=True)
    assert "    slowdown: infinite" in finding_lines(shown)
    journal = Journal(tmp_path / "journal.sqlite")
    number = journal.add_finding(finding)
    row = JournalReader(tmp_path / "journal.sqlite").finding(number)
    assert row is not None
    assert row.evidence["slowdown"] is None
    assert evidence_of(finding.kind, row.evidence) == evidence
    journal.close()


def test_undo_distinguishes_acts_and_findings() -> None:
    assert isinstance(undo_from_json({"result": "undone", "finding": 1, "dropped_moves": 0, "acts": [],
                                      "moved_files": []}), UndoFindingAnswer)


def test_every_field_has_a_key_of_its_own() -> None:
    for cls in CLASSES:
        keys = [cls.json_names.get(name, name) for name in cls.field_types]
        assert len(keys) == len(set(keys)), cls
