"""The same trouble, over and back again: each time has a number of its own, and what is done goes with that."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from lustre.changelog.record import Record
from lustre.filesystem import FileStatus
from tests.tierd.daemon.remediation_world import Planned, RemediationWorld
from tests.tierd.simulated import COVERING, HDD, NOISE, world
from tests.tierd.site import Site, shown
from tierd.acts import ActKind
from tierd.config.settings import Settings
from tierd.daemon.node import Source
from tierd.model import Action, Evidence, Finding
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.readings import Reading


def test_each_time_can_be_requested(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, "pause", "only looking", site=site)
    site.run(until=55)
    site.cluster.stop(NOISE.job_id)
    site.run(until=90)
    site.cluster.add(replace(NOISE, start_seconds=site.cluster.now))
    site.run(until=130)
    again, found, _ = shown(capsys, "findings", site=site).partition("  noisy-neighbour")
    assert found
    first, second = (shown(capsys, "explain", name, site=site) for name in ("F1", again))
    assert "; ended 20" in first
    assert f"Found again as {again} (20" in first
    assert "; active." in second
    assert "Found before as F1 (20" in second
    assert "Found again" not in second


def test_an_answer_about_a_finding_that_has_just_ended_gives_it_no_second_number(tmp_path: Path) -> None:
    """Answers are prepared while another thread observes: a finding may end in between."""
    at = world(tmp_path)
    at.run_until_said("FOUND noisy-neighbour", before=60)
    (finding,) = at.daemon.findings
    assert at.daemon.log.known_number(finding) == 1
    other = replace(finding, aggressor="gone.1")
    assert at.daemon.log.known_number(other) == 0
    assert at.journal.key_of_finding(2) is None


def test_the_same_neighbour_in_another_directory_is_acted_on_again(tmp_path: Path) -> None:
    """Jobs keep their names for months, as ``python3.1001`` does: one case must not be the last of two jobs."""
    at = world(tmp_path)
    at.run(until=150)
    assert sum("KEPT: it helped" in words for words in at.said) == 1
    at.cluster.stop(NOISE.job_id)
    at.run(until=190)
    at.cluster.make_directory("/proj/elsewhere", HDD)
    at.cluster.add(replace(NOISE, directory="/proj/elsewhere", start_seconds=at.cluster.now))
    while sum("KEPT: it helped" in words for words in at.said) < 2:
        at.run(until=at.cluster.now + 5)
        assert at.cluster.now < 420
    where = [words.partition(" of ")[2].partition(":")[0] for words in at.said if words.startswith("SET default")]
    assert where == [NOISE.directory, "/proj/elsewhere"]
    assert sum("KEPT: it helped" in words for words in at.said) == 2
    (case,) = at.daemon.cases
    assert [outcome.action.directory for outcome in (*case.earlier, *case.defaults)] == where
    full = {target: replace(room, avail_bytes=0) for target, room in at.filesystem.space().items()}
    at.filesystem.space = lambda: full  # type: ignore[method-assign]
    at.run(until=at.cluster.now + 10)
    assert sum("is down to its reserve" in words for words in at.said) == 2


class Uneven:
    """A source whose readings are early or late: the time that they give is not that of their counters."""

    def __init__(self, near: Source, rng: Random) -> None:
        self._near = near
        self._rng = rng

    def reading(self) -> Reading:
        seen = self._near.reading()
        return replace(seen, time=seen.time + (self._rng.uniform(-2.0, 2.0) if self._rng.random() < 0.4 else 0.0))

    def records(self) -> Iterable[Sequence[Record] | Tally]:
        return self._near.records()


@pytest.mark.parametrize("seed", [2, 4])
def test_uneven_readings_do_not_end_a_finding(tmp_path: Path, seed: int) -> None:
    at = world(tmp_path, dry_run=True, hook=lambda near, _: Uneven(near, Random(seed)))
    at.run(until=150)
    assert sum(words.startswith("FOUND noisy-neighbour") for words in at.said) == 1
    assert not any(words.startswith("ended") for words in at.said)
    at.cluster.stop(NOISE.job_id)
    at.run(until=190)
    assert any(words.startswith("ended") for words in at.said)


def test_directories_that_cool_down_cost_no_requests_for_sizes(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run_until_said("SET default layout", before=120)
    shown(capsys, "undo", "1", site=site)
    site.cluster.stop(NOISE.job_id)
    site.run_until_said("ended", before=160)
    site.cluster.add(replace(NOISE, start_seconds=site.cluster.now))
    site.run_until_said("it is left alone for", before=240)
    asked: list[str] = []
    status = site.filesystem.status

    def counting(path: str) -> FileStatus:
        asked.append(path)
        return status(path)

    site.filesystem.status = counting  # type: ignore[method-assign]
    site.run(until=site.cluster.now + 20)
    assert "it is left alone for" in shown(capsys, "status", site=site)
    assert asked == []


FOUND = Finding("hot-small-files", 100.0, "py.3", "", (), "it reads again and again", Evidence(), ("/sw",),
                subject="/sw")


def test_acts_belong_to_the_finding_that_holds(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=())
    at.cluster.make_directory("/sw")
    file = at.cluster.make_file("/sw/lib", 1000)
    settings = replace(Settings(), act=replace(Settings().act, on=("hot-small-files",)))
    default = Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "because", FOUND.key, "/sw")
    move = Action(ActKind.MIGRATE, COVERING, "because", FOUND.key, "/sw", "/sw/lib", 1000, file.fid)
    setup = RemediationWorld(at, Planned(lambda found: (default if found is FOUND else move,)), settings)
    setup.finding_log.begun(FOUND)
    setup.act([FOUND])
    setup.finding_log.ended(FOUND, 400.0, acted_on=True)
    (case,) = setup.store
    case.finding_ended(400.0)
    again = replace(FOUND, time=500.0)
    setup.finding_log.begun(again)
    setup.act([again])
    assert [move.finding for move in at.journal.queue.all()] == [2]
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db:
        reported = db.execute("SELECT finding, sentence FROM told").fetchall()
    assert {number for number, sentence in reported if sentence.startswith("SET")} == {1}
    assert {number for number, sentence in reported if sentence.startswith("QUEUED")} == {2}
