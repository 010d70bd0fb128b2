"""What the loop looks at in each cycle: room on flash before defaults fill it, and files before they move."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tierd.simulated import COVERING, HDD, NOISE, STREAM, world
from tests.tierd.site import Site
from tierd.act.journal.writer import Judgements
from tierd.acts import ActKind
from tierd.model import Action
from tierd.sense.space import capacity


def test_a_default_is_undone_before_the_next_check_could_find_flash_full(tmp_path: Path) -> None:
    """A job that fills flash within a cycle or two would otherwise write to a full pool until tierd looks again."""
    at = world(tmp_path, jobs=(STREAM, replace(NOISE, keep=100_000)))
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
    leave(0.05)
    short = [at.daemon.undoing._short("/proj/ingest", each, capacity(at.filesystem)) != "" for each in (COVERING, HDD)]
    assert short == [True, False], "the second fills no flash"


def test_default_layouts_of_years_are_not_read_in_each_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, read = world(tmp_path), list[int]()
    every = Judgements.default_layouts_in_force
    monkeypatch.setattr(Judgements, "default_layouts_in_force", lambda self: read.append(1) or every(self))
    at.run_until_said("SET default layout of /proj/ingest", before=200)
    at.run(at.cluster.now + 60)
    assert len(read) <= 2, "at the start, and after the act"


def test_a_file_that_has_grown_since_the_plan_is_refused(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=(STREAM,))
    at.cluster.make_file("/proj/ingest/big", 5 << 20)
    at.cluster.advance(1)
    at.gate.submit([Action(ActKind.MIGRATE, COVERING, "", ("noisy-neighbour", "m", "s"), path="/proj/ingest/big")], 1)
    (outcome,) = at.gate.pump(at.cluster.epoch + 60)
    assert (outcome.result, outcome.detail) == (
        "refused", "the file has grown to 5242880 bytes and no longer fits the flash component")


@pytest.mark.parametrize("why", ["mover", "claim", "nats", "changelog", "opt-outs", "pause", "pause file", "stale",
                                 "blind"])
def test_queued_acts_wait_whatever_holds_them_back(reading: Site, why: str) -> None:
    daemon, state = reading.service.daemon, reading.service.gate.operating_state
    reading.cluster.advance(2.0)  # the limits allow some
    assert daemon.may_begin
    verdicts_too = why in {"claim", "nats", "pause", "pause file"}
    if why == "pause file":
        Path(reading.settings.act.pause_file).write_text("quiet", "utf-8")
    elif why == "pause":
        state.pause("quiet")
    elif why == "stale":
        reading.cluster.advance(reading.settings.sense.stale_seconds + 2 * reading.settings.sense.cycle_seconds)
    else:
        daemon._seen = None if why == "blind" else daemon._seen
        daemon.log.fault(why, "of this test")
    gate, waiting = reading.service.gate, reading.service.gate.waiting
    daemon.move(5.0)
    assert (daemon.may_begin, gate.waiting, daemon._allowed()) == (why == "changelog", waiting, not verdicts_too)
    word = "PAUSED" if why in {"pause", "pause file"} else "CANNOT ACT"
    assert reading.shown("status").startswith(f"{word}: ")
    assert f">{word}</span>" in reading.fetched("/")[1]
    metrics = reading.fetched("/metrics")[1]
    assert ('tierd_paused{fs="lustre"} 1.0' in metrics) == (word == "PAUSED")
    assert ('source="opt-outs"} 1.0' in metrics) == (why == "opt-outs")
