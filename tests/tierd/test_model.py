import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.worlds import noise
from tierd.config.act import ActSettings
from tierd.model import Evidence, OtherEvidence
from tierd.policies.noisy_neighbour import NoisyNeighbourEvidence
from tierd.policies.registry import evidence_of, policies, policy_of
from tierd.text import Carrier, evidence_parts


@pytest.mark.parametrize("kind", [name for name, policy in policies().items() if policy.evidence is not Evidence])
@given(data=st.data())
def test_evidence_comes_back_from_the_journal_as_it_was(kind: str, data: st.DataObject) -> None:
    of = policy_of(kind).evidence
    drawn = {"int": st.integers(0, 1 << 50), "Carrier": st.sampled_from(Carrier)}
    values = {field.name: data.draw(drawn.get(str(field.type).partition(" ")[0], st.floats(allow_nan=False)))
              for field in fields(of)}
    evidence = of(**values)
    assert evidence_of(kind, json.loads(json.dumps(evidence.numbers()))) == evidence


def test_numbers_of_an_older_or_newer_version_are_read_as_far_as_they_are_there() -> None:
    numbers = noise(device_time_share=0.3).numbers()
    assert "learnt_windows" not in numbers
    newer = evidence_of("noisy-neighbour", {**numbers, "moon_phase": 0.5})
    assert newer == noise(device_time_share=0.3)
    assert isinstance(newer, NoisyNeighbourEvidence)
    assert newer.carrier is Carrier.ARRIVAL
    del numbers["device_time_share"]
    assert evidence_of("noisy-neighbour", numbers) == noise()
    del numbers["aggressor_read_share"]
    assert evidence_of("noisy-neighbour", numbers) == OtherEvidence(numbers)
    for name, value in (("carrier", 99.0), ("aggressor_largest_rpc_bytes", float("inf"))):
        odd = {**noise().numbers(), name: value}
        assert evidence_of("noisy-neighbour", odd) == OtherEvidence(odd)


def test_each_carrier_of_a_loss_has_its_own_words() -> None:
    words = {evidence_parts("carrier", float(each))[1] for each in Carrier}
    assert len(words) == len(Carrier)
    assert not any(word.isdigit() for word in words)


def test_policies_that_act_have_typed_evidence_and_the_default_names_only_such() -> None:
    acting = [policy for policy in policies().values() if policy.plan is not None]
    assert all(policy.evidence is not Evidence for policy in acting)
    assert set(ActSettings().on) <= {policy.name for policy in acting}
