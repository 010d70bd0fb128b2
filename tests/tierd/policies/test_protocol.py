"""A policy of another package: from its entry point to the verdict, and in all that people see."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from lustre.layout.model import Component, Layout
from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tests.tierd.tapes import TAPES
from tierd.__main__ import main
from tierd.config.load import load
from tierd.config.settings import Settings
from tierd.engine import situation_of
from tierd.model import Capacity, Evidence, Facts, Finding
from tierd.policies.protocol import Use
from tierd.policies.registry import policies

ROOT = Path(__file__).parents[3]
THEIRS = dedent((ROOT / "docs/policies.md").read_text().partition("POLICY\n\n")[2].partition("\n\nBoth functions")[0])
"""The policy that the documentation has as its example."""


def with_theirs(settings: Settings, folder: Path) -> Settings:
    text = folder / "tierd.toml"
    text.write_text('[act]\non = ["many-creates"]\n[detect.many_creates]\nenabled = true\n')
    theirs = load(text)
    return replace(settings, act=replace(settings.act, on=theirs.act.on), policies=theirs.policies)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, as pip installs it."""
    folder = tmp_path / "site-packages"
    about = folder / "site_policies-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "site_policies.py").write_text(THEIRS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: site-policies\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[lustre_tierd.policies]\nmany-creates = site_policies:POLICY\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "site_policies", raising=False)
    policies.cache_clear()
    yield
    policies.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_case_is_found_planned_acted_on_judged_and_explained(site: Site, tmp_path: Path) -> None:
    site.settings = with_theirs(site.settings, tmp_path)
    site.begin_again(FluidCluster(recorded_test_bed(), (replace(NOISE, start_seconds=0.0),)))
    site.run_until_said("FOUND many-creates: ", before=120)
    assert any(words.startswith("SET default layout of /proj/ingest") for words in site.said)
    assert "many-creates" in site.shown("findings")
    site.run_until_said("KEPT: ", before=400)
    explained = site.shown("explain", "F1")
    assert "F1, many-creates" in explained
    assert "creates: 20.0/s" in explained
    assert "creates: 20" in site.shown("findings"), "the act does not change how the rate is counted"
    assert "new files/s" in explained
    status = site.shown("status")
    assert "mdt_small.1001 creates many files" in status
    assert "case F1: mdt_small.1001 in /proj/ingest, found " in status
    _, metrics = site.fetched("/metrics")
    assert 'tierd_findings_total{fs="lustre",kind="many-creates"} 1.0' in metrics


FAILS = """

def plan(finding, evidence, situation):
    return situation.capacity.size_bytes["nvme"]
"""
NO_PLAN = """

def plan(finding, evidence, situation):
    return [f"move {place}" for place in finding.directories]
"""
OF_ANOTHER = """
usual = plan


def plan(finding, evidence, situation):
    made = usual(finding, evidence, situation)
    return Plan(tuple(replace(each, finding=("x", "y", "z")) for each in made.actions), ())
"""


@pytest.mark.parametrize(("plan", "words"), [
    (FAILS, "KeyError: 'nvme' (site_policies.py:"), (NO_PLAN, "TypeError: it returns no Plan of Actions and Refusals"),
    (OF_ANOTHER, "ValueError: its plan has an act for another finding")])
@pytest.mark.usefixtures("installed")
def test_a_plan_that_fails_is_refused_and_tierd_goes_on(
        plan: str, words: str, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head, policy = THEIRS.replace("import dataclass", "import dataclass, replace").split("\n\nPOLICY")
    (tmp_path / "site-packages/site_policies.py").write_text(f"{head}{plan}\n\nPOLICY{policy}")
    monkeypatch.delitem(sys.modules, "site_policies", raising=False)
    policies.cache_clear()
    site.settings = with_theirs(site.settings, tmp_path)
    site.begin_again(FluidCluster(recorded_test_bed(), (replace(NOISE, start_seconds=0.0),)))
    site.run_until_said(f"not done: many-creates: its plan failed: {words}", before=120)
    site.run(until=180)
    assert f"its plan failed: {words}" in site.shown("explain", "F1")
    assert 'reason="policy-failed"' in site.fetched("/metrics")[1]


BROKEN = """

def broken(*arguments):
    return arguments[99]


POLICY = replace(
    POLICY, find_slowed=broken, directories=broken, place=broken, walk=broken, busy_directory=broken, is_short=broken,
    why_advice=broken, judge_moves=broken, judge_default=broken, mirrored=broken, unmirrored=broken)
"""


@pytest.mark.usefixtures("installed")
def test_functions_that_fail_end_nothing(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"from dataclasses import replace\nfrom tierd.policies.protocol import *\n{THEIRS}{BROKEN}"
    (tmp_path / "site-packages/site_policies.py").write_text(text)
    monkeypatch.delitem(sys.modules, "site_policies", raising=False)
    policies.cache_clear()
    site.settings = with_theirs(site.settings, tmp_path)
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, replace(NOISE, start_seconds=30.0))))
    site.run(until=200)
    status = site.shown("status")
    for name in ("find_slowed", "walk", "busy_directory", "is_short"):
        assert f"{name}: IndexError: tuple index out of range (site_policies.py:" in status
    theirs: Any = policies()["many-creates"]
    layout, use = Layout((Component(),), composite=False), Use(0.0)
    finding = Finding("many-creates", 0.0, "", "", (), "", Evidence())
    assert theirs.why_advice(finding) is None
    assert theirs.directories(site.settings.tables) == ()
    assert theirs.judge_default("/", None, Facts(), 0.0) is None
    assert theirs.mirrored(layout, use) is layout
    assert theirs.place(layout, use, situation_of(site.settings, Capacity({}, {}, {})), False).layout is layout
    assert any(words.startswith("FOUND noisy-neighbour") for words in site.said)


@pytest.mark.usefixtures("installed")
def test_it_is_found_without_a_configuration_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(TAPES / "noisy-create-1m")]) == 0
    assert "many-creates: mdt_small.1001 creates many files" in capsys.readouterr().out
    assert "many-creates" in [each.policy.name for each in load(None).policies]


@pytest.mark.usefixtures("installed")
def test_one_that_cannot_be_used_ends_a_replay_with_the_reason(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry_points = tmp_path / "site-packages/site_policies-1.0.dist-info/entry_points.txt"
    entry_points.write_text("[lustre_tierd.policies]\nmany-creates = site_policies:MISSING\n")
    for command in (["replay", str(TAPES / "control-quiet")], ["--check-config"]):
        assert main(command) == 1
        assert capsys.readouterr().err.startswith("policy many-creates (site_policies:MISSING) cannot be loaded: ")
