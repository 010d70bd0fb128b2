from __future__ import annotations

import json
import pickle
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import noise
from tierd.config.act import ActSettings
from tierd.model import (
    ACTIONABLE_KINDS,
    EVIDENCE_BY_KIND,
    Evidence,
    Finding,
    NoisyNeighbourEvidence,
    OtherEvidence,
    evidence_of,
)


@pytest.mark.parametrize("kind", EVIDENCE_BY_KIND)
@given(data=st.data())
def test_evidence_comes_back_from_the_journal_as_it_was(kind: str, data: st.DataObject) -> None:
    of = EVIDENCE_BY_KIND[kind]
    values = {field.name: data.draw(st.integers(0, 1 << 50)) if str(field.type).startswith("int")
              else data.draw(st.floats(allow_nan=False)) for field in fields(of)}
    evidence = of(**values)
    assert evidence_of(kind, json.loads(json.dumps(evidence.numbers()))) == evidence


def test_numbers_of_an_older_or_newer_version_are_read_as_far_as_they_are_there() -> None:
    numbers = noise(bystanders_gain_share=0.3).numbers()
    assert "learnt_windows" not in numbers
    newer = evidence_of("noisy-neighbour", {**numbers, "moon_phase": 0.5})
    assert newer == noise(bystanders_gain_share=0.3)
    del numbers["bystanders_gain_share"], numbers["bystanders_gain_bytes_per_second"]
    assert evidence_of("noisy-neighbour", numbers) == noise()
    del numbers["aggressor_read_share"]
    assert evidence_of("noisy-neighbour", numbers) == OtherEvidence(numbers)
    assert evidence_of("noisy-neighbour", {**noise().numbers(), "quiet_windows": float("inf")}).numbers()[
        "quiet_windows"] == float("inf")


def test_a_finding_takes_its_numbers_as_a_mapping_too() -> None:
    found = Finding("noisy-neighbour", 0.0, "m", "s", (), "slow", noise().numbers())  # type: ignore[arg-type]
    assert isinstance(found.evidence, NoisyNeighbourEvidence)
    assert found.evidence.whole_small_files
    assert Finding("noisy-neighbour", 0.0, "m", "s", (), "slow", {}).evidence == OtherEvidence({})  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(found)) == found


def test_kinds_that_tierd_acts_on_have_typed_evidence_and_the_default_names_only_such() -> None:
    assert set(ACTIONABLE_KINDS) <= set(EVIDENCE_BY_KIND)
    assert set(ActSettings().on) <= set(ACTIONABLE_KINDS)


def test_whatever_has_no_numbers_has_none() -> None:
    assert Evidence().numbers() == {}
