"""The whole loop, on the simulated test bed with single requests, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lustre.fid import Fid
from lustre.layout.model import Layout
from simulator.cluster import Cluster
from tests.tierd import simulated
from tests.tierd.simulated import COVERING, NOISE, STREAM, Faulty, World
from tests.tierd.site import altered
from tierd.act.journal.writer import Judgements
from tierd.acts import ActKind
from tierd.config.settings import Settings
from tierd.model import Action

world = partial(simulated.world, model=Cluster)


def layout_of(at: World) -> Layout:
    layout = at.filesystem.layout(NOISE.directory)
    assert layout is not None
    return layout


def test_the_neighbour_is_found_put_on_flash_and_the_stream_recovers(tmp_path: Path) -> None:
    at = world(tmp_path)
    at.run(until=150)
    alone, after = at.rate(STREAM.job_id, 5, 30), at.rate(STREAM.job_id, 100, 145)
    assert after >= 0.97 * alone
    assert layout_of(at).components[0].pool == "flash"
    reported = "\n".join(at.said)
    assert "FOUND noisy-neighbour: ior_stream.1002 streams at" in reported
    assert "SET default layout of /proj/ingest: first 1M on flash" in reported
    assert "KEPT: it helped. ior_stream.1002:" in reported
    assert [e.outcome for e in at.journal.entries()] == ["done"]


def test_an_act_that_does_not_help_is_undone(tmp_path: Path) -> None:
    """With an unreachable required gain the verdict is did-not-help, and the directory's layout is restored."""
    settings = altered(Settings(), verify={"min_gain": 0.999999, "judge_seconds": 20.0})
    at = world(tmp_path, settings=settings)
    before = at.filesystem.layout(NOISE.directory)
    at.cluster.slow_down(2, 1.0)
    at.run_until_said("SET default layout", before=70)
    at.cluster.slow_down(2, 1.45)  # meanwhile one disk becomes slow: the stream stays slow whatever the layout
    at.run(until=140)
    assert at.filesystem.layout(NOISE.directory) == before
    assert any(s.startswith("UNDOING: it did not help") for s in at.said)
    assert [e.outcome for e in at.journal.entries()] == ["undone"]


def test_a_blind_source_stops_everything_and_says_so(tmp_path: Path) -> None:
    at = simulated.world(tmp_path, hook=lambda near, _: Faulty(near))
    assert isinstance(at.source, Faulty)
    at.run(until=30)
    at.source.fault = ConnectionRefusedError(111, "Connection refused")
    at.run(until=80)
    assert [s for s in at.said if "blind" in s] == [
        "blind: [Errno 111] Connection refused; tierd does nothing until it can read the counters again"]
    assert at.daemon.faults
    assert list(at.journal.entries()) == []
    at.source.fault = None
    at.run(until=140)
    assert "blind: recovered" in at.said
    assert [e.outcome for e in at.journal.entries()] == ["done"]


def test_a_default_is_undone_before_the_next_check_could_find_flash_full(tmp_path: Path) -> None:
    """A job that fills flash within a cycle or two would otherwise write to a full pool until tierd looks again."""
    at = simulated.world(tmp_path, jobs=(STREAM, replace(NOISE, keep=100_000)))
    at.run_until_said("SET default layout", before=120)
    room, flash = at.filesystem.space(), at.filesystem.pools()["flash"]

    def leave(share: float) -> None:
        space = {target: replace(each, avail_bytes=int(share * each.size_bytes)) if target in flash else each
                 for target, each in room.items()}
        at.filesystem.space = lambda: space  # type: ignore[method-assign]
        at.run(until=at.cluster.now + 5)

    for share in (0.9, 0.6, 0.4):
        leave(share)
    assert not any("UNDONE" in sentence for sentence in at.said)
    leave(0.22)  # as much again would leave 4%; the reserve is 10%
    assert any("is down to its reserve, or will be before the next check" in sentence for sentence in at.said)


def test_default_layouts_of_years_are_not_read_in_each_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, read = simulated.world(tmp_path), list[int]()
    every = Judgements.default_layouts_in_force
    monkeypatch.setattr(Judgements, "default_layouts_in_force", lambda self: read.append(1) or every(self))
    at.run_until_said("SET default layout of /proj/ingest", before=200)
    at.run(at.cluster.now + 60)
    assert len(read) <= 2, "at the start, and after the act"


FINDING = ("noisy-neighbour", "m", "s")


@pytest.fixture
def ingesting(tmp_path: Path) -> World:
    at = world(tmp_path, jobs=(STREAM,))
    at.cluster.make_directory("/proj/ingest")
    at.cluster.make_file("/proj/ingest/a", 1 << 20)
    at.cluster.make_file("/proj/ingest/big", 5 << 20)
    at.cluster.advance(1)
    return at


def moved(at: World, action: Action) -> tuple[str, str]:
    at.gate.submit([action], 1)
    (outcome,) = at.gate.pump(at.cluster.epoch + 60)
    return outcome.result, outcome.detail


@pytest.mark.parametrize(("name", "fid", "why"), [
    ("big", None, "the file has grown to 5242880 bytes and no longer fits the flash component"),
    ("a", Fid(1, 1), "another file has this name now")])
def test_a_file_that_changed_since_the_plan_is_refused(ingesting: World, name: str, fid: Fid | None, why: str) -> None:
    action = Action(ActKind.MIGRATE, COVERING, "", FINDING, path=f"/proj/ingest/{name}", fid=fid)
    assert moved(ingesting, action) == ("refused", why)
