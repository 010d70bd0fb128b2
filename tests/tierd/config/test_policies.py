from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tierd.config.load import parse
from tierd.config.settings import Settings
from tierd.detect.view import View
from tierd.model import Finding
from tierd.policies.protocol import Common, Policy
from tierd.policies.registry import BUILT_IN, GROUP, PolicyError, available_policies, table_types


def nothing(_: View, __: Common) -> Iterator[Finding]:
    yield from ()


OURS = Policy("tape-drive", Common, nothing)
NAMED_AS_ANOTHER = Policy("hot-small-files", Common, nothing)
NO_POLICY = "a string"


def entry(attribute: str) -> EntryPoint:
    return EntryPoint("theirs", f"tests.tierd.config.test_policies:{attribute}", GROUP)


def test_a_policy_of_another_package_follows_the_built_in_ones() -> None:
    policies = available_policies([entry("OURS")])
    assert [d.name for d in policies] == [*(d.name for d in BUILT_IN), "tape-drive"]
    settings = parse(b"[detect.tape_drive]\nbegin_looks = 9\n", "t.toml", policies)
    assert settings.policies[-1].settings.begin_looks == 9


@pytest.mark.parametrize(("attribute", "words"), [
    ("MISSING", "cannot be loaded"), ("NO_POLICY", "is not a tierd.policies.protocol.Policy"),
    ("NAMED_AS_ANOTHER", "the name 'hot-small-files' is taken")])
def test_one_that_cannot_be_used_is_named(attribute: str, words: str) -> None:
    with pytest.raises(PolicyError, match=f"policy theirs.*{words}"):
        available_policies([entry(attribute)])


def test_names_are_unique_and_settings_valid_by_default() -> None:
    assert len({d.name for d in BUILT_IN}) == len(BUILT_IN)
    for policy in BUILT_IN:
        assert policy.settings().enabled
        assert policy.settings.__doc__
        for function in (policy.find, policy.find_slowed, policy.plan):
            assert function is None or function.__doc__
    assert all(table().__doc__ for table in table_types(BUILT_IN).values())


def test_settings_go_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Settings())) == Settings()


def test_the_documentation_has_each_detector_with_its_settings_and_defaults() -> None:
    text = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    for detector in BUILT_IN:
        if detector.find is None:
            continue
        section, common = sections[detector.name], {f.name for f in fields(Common)}
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^ |]+) \|", section, re.MULTILINE))
        for field in fields(detector.settings):
            if field.name not in common and isinstance(getattr(detector.settings(), field.name), (int, float)):
                assert float(rows[field.name]) == getattr(detector.settings(), field.name), (detector.name, field.name)
