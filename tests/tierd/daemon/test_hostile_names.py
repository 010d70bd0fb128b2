"""A neighbour with a hostile name in a hostile place, or whose records are lost: acted on safely, and explained."""

from __future__ import annotations

import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from simulator.fluid.cluster import FluidCluster
from simulator.scenarios.events import Event, schedule
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM, world
from tests.tierd.site import Site, shown
from tierd.acts import Outcome
from tierd.daemon.client import ask

EVIL = [("evil\x1b[2J\"};$(id).7", "/proj/in\x1b[31m'\n$(id)"), ("a b:c,{d}\n.7", "/proj/\udcff\udcfe"),
        ("-rf.7", "/proj/-rf"), ("../../etc.7", "/proj/.. "), ("<script>.7", "/proj/<script>alert(1)</script>")]


@pytest.mark.parametrize(("job", "directory"), EVIL, ids=["terminal", "bytes", "option", "path", "page"])
def test_a_name_does_no_harm_from_the_finding_to_the_verdict(site: Site, capsys: pytest.CaptureFixture[str], job: str,
                                                             directory: str) -> None:
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, replace(NOISE, job_id=job, directory=directory))))
    sentences = []
    while site.cluster.now < 130:
        site.cluster.advance(5)
        sentences.append(site.service.cycle())
    (entry,) = site.service.journal.entries()
    assert (entry.place, entry.outcome) == (directory, "done")
    assert all(sentence.isprintable() for sentence in (*site.said, *sentences))
    for command in (["status"], ["findings"], ["top"], ["plan"], ["history", "--long"], ["explain", "F1"], ["advise"]):
        printed = shown(capsys, *command, site=site)
        assert all(line.isprintable() for line in printed.splitlines()), command
    assert "it helped" in shown(capsys, "explain", "F1", site=site)
    assert site.service.web is not None
    for path in ("metrics", ""):
        with urllib.request.urlopen(f"http://127.0.0.1:{site.service.web.port}/{path}", timeout=10) as answer:
            page = answer.read().decode()
        assert "<script>alert" not in page
        if path == "metrics":
            assert len(list(text_string_to_metric_families(page))) > 30
    assert ask(site.socket, {"request": "undo", "id": 1})["result"] == "undone"


LOSSES = {
    "a gap before anything is done": (Event(31, "changelog_gap", {"target": "MDT0000"}), "the table is complete again"),
    "a gap while it is judged": (Event(57, "changelog_gap", {"target": "MDT0000"}), "the table is complete again"),
    "a reader thrown out": (Event(31, "changelog_deregistered", {"target": "MDT0000"}), "changelog of MDT0000"),
    "a reader thrown out while it is judged": (Event(57, "changelog_deregistered", {"target": "MDT0000"}),
                                               "changelog of MDT0000"),
}


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_lost_records_are_reported_while_there_is_a_neighbour_and_nothing_is_guessed(tmp_path: Path,
                                                                                          name: str) -> None:
    event, words = LOSSES[name]
    at = world(tmp_path, jobs=(STREAM, replace(NOISE, rereads_per_second=8.0, files_per_second=10.0, keep=300)))
    schedule([event], at.cluster)
    stale: list[tuple[float, int]] = []
    while at.cluster.now < 150:
        begun = len(list(at.journal.entries()))
        at.run(at.cluster.now + 5)
        if "changelog" in at.daemon.faults:
            stale.append((at.cluster.now, len(list(at.journal.entries())) - begun))
    assert any(words in sentence for sentence in at.said)
    assert [acts for _, acts in stale if acts] == [], "no act starts while the changelog is stale"
    assert {entry.outcome for entry in at.journal.entries()} <= {"done", "gone", "refused", "gave-way"}
    for entry in at.journal.entries(Outcome.DONE):
        assert entry.place == NOISE.directory or entry.place.startswith(NOISE.directory + "/")
    acted = bool(list(at.journal.entries(Outcome.DONE)))
    assert acted == ("thrown out" not in name or "judged" in name), "after a gap the directories are checked again"
