from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tierd.config.detectors import PluginError, available_detectors
from tierd.config.load import parse
from tierd.config.settings import Settings
from tierd.detect.builtin import BUILT_IN
from tierd.detect.plugin import GROUP, Common, Detector, View
from tierd.model import Finding


def nothing(_: View, __: Common) -> Iterator[Finding]:
    yield from ()


OURS = Detector("tape-drive", Common, nothing)
NAMED_AS_ANOTHER = Detector("hot-small-files", Common, nothing)
NO_DETECTOR = "a string"


def entry(attribute: str) -> EntryPoint:
    return EntryPoint("theirs", f"tests.tierd.config.test_detectors:{attribute}", GROUP)


def test_a_detector_of_another_package_follows_the_built_in_ones() -> None:
    detectors = available_detectors([entry("OURS")])
    assert [d.name for d in detectors] == [*(d.name for d in BUILT_IN), "tape-drive"]
    settings = parse(b"[detect.tape_drive]\nbegin_looks = 9\n", "t.toml", detectors)
    assert settings.detect[-1].settings.begin_looks == 9


@pytest.mark.parametrize(("attribute", "words"), [
    ("MISSING", "cannot be loaded"), ("NO_DETECTOR", "is not a tierd.detect.plugin.Detector"),
    ("NAMED_AS_ANOTHER", "the name 'hot-small-files' is taken")])
def test_one_that_cannot_be_used_is_named(attribute: str, words: str) -> None:
    with pytest.raises(PluginError, match=f"detector theirs.*{words}"):
        available_detectors([entry(attribute)])


def test_names_are_unique_and_settings_valid_by_default() -> None:
    assert len({d.name for d in BUILT_IN}) == len(BUILT_IN)
    for detector in BUILT_IN:
        assert detector.settings().enabled
        assert detector.detect.__doc__
        assert detector.settings.__doc__


def test_settings_go_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Settings())) == Settings()


def test_the_documentation_has_each_detector_with_its_settings_and_defaults() -> None:
    text = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    for detector in BUILT_IN:
        section, common = sections[detector.name], {f.name for f in fields(Common)}
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^ |]+) \|", section, re.MULTILINE))
        for field in fields(detector.settings):
            if field.name not in common and isinstance(getattr(detector.settings(), field.name), (int, float)):
                assert float(rows[field.name]) == getattr(detector.settings(), field.name), (detector.name, field.name)
