"""Users' opt-out and pins, at the gate and in plans, over the simulated file system."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.tierd.act.gate_world import submitted
from tests.tierd.simulated import COVERING, HDD, NOISE, STREAM, world
from tierd.act.opt_out import OptOut
from tierd.config.scopes import Scope
from tierd.config.settings import Settings
from tierd.model import Action
from tierd.simulation.world import VirtualClock

FINDING = ("noisy-neighbour", "m", "s")


@pytest.fixture
def filesystem() -> SimulatedFilesystem:
    cluster = Cluster(recorded_test_bed())
    cluster.make_file("/proj/a/b/file", 1000)
    return SimulatedFilesystem(cluster)


def consent(filesystem: SimulatedFilesystem) -> OptOut:
    return OptOut(filesystem, VirtualClock(filesystem._cluster))


def test_without_a_word_everything_may_be_moved(filesystem: SimulatedFilesystem) -> None:
    assert consent(filesystem).of_file("/proj/a/b/file") is None
    assert consent(filesystem).of_directory("/proj/a") is None


@pytest.mark.parametrize("value", [b"off", b"OFF\n", b" off\0"])
def test_off_holds_for_all_below(filesystem: SimulatedFilesystem, value: bytes) -> None:
    filesystem.set_xattr("/proj", "user.tierd", value)
    said = "user.tierd is off at /proj: the owner opted out"
    assert str(consent(filesystem).of_file("/proj/a/b/file")) == said
    assert str(consent(filesystem).of_directory("/proj/a/b")) == said
    assert consent(filesystem).of_directory("/") is None


def test_the_nearest_word_counts(filesystem: SimulatedFilesystem) -> None:
    filesystem.set_xattr("/proj", "user.tierd", b"off")
    filesystem.set_xattr("/proj/a/b", "user.tierd", b"on")
    assert consent(filesystem).of_file("/proj/a/b/file") is None
    filesystem.set_xattr("/proj/a/b/file", "user.tierd", b"off")
    assert "off at /proj/a/b/file" in str(consent(filesystem).of_file("/proj/a/b/file"))


def test_what_is_not_understood_counts_as_off(filesystem: SimulatedFilesystem) -> None:
    filesystem.set_xattr("/proj/a", "user.tierd", b"\x1b[2Jmaybe\xff")
    said = str(consent(filesystem).of_file("/proj/a/b/file"))
    assert "neither on nor off, so tierd changes nothing there" in said
    assert said.isprintable()


def test_a_pin_is_quoted(filesystem: SimulatedFilesystem) -> None:
    filesystem.set_xattr("/proj/a/b/file", "lustre.pin", b"- pool: nvme\n")
    assert str(consent(filesystem).of_file("/proj/a/b/file")) == "the file is pinned: - pool: nvme"


def test_what_cannot_be_read_is_left_alone(filesystem: SimulatedFilesystem) -> None:
    class Hung(SimulatedFilesystem):
        def xattr(self, path: str, name: str) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    opt_out = consent(Hung(filesystem._cluster))
    assert "the file: Input/output error" in str(opt_out.of_file("/proj/a/b/file"))
    assert "cannot read the opt-out of /proj: Input/output error" in str(opt_out.of_directory("/proj"))


def test_the_gate_refuses_and_the_journal_says_why(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=())
    inode = at.cluster.make_file("/proj/in/f", 1000)
    at.cluster.set_default_layout("/proj/in", HDD)
    at.filesystem.set_xattr("/proj/in", "user.tierd", b"off")
    number = 1
    at.gate.submit([Action("migrate", COVERING, "because", FINDING, "/proj/in", "/proj/in/f", 1000, inode.fid)], number)
    (moved,) = at.gate.pump(at.cluster.epoch + 5)
    (default,) = submitted(at.gate, [Action("set-default-layout", COVERING, "because", FINDING, "/proj/in")], number)
    for outcome in (moved, default):
        assert (outcome.result, outcome.detail) == (
            "refused", "user.tierd is off at /proj/in: the owner opted out")
    assert [e.outcome for e in at.journal.entries()] == ["refused", "refused"]


def test_a_noisy_job_whose_owner_opted_out_is_found_and_left_alone(tmp_path: Path) -> None:
    at = world(tmp_path)
    before = at.filesystem.layout(NOISE.directory)
    at.filesystem.set_xattr("/proj", "user.tierd", b"off")
    at.run(until=90)
    reported = "\n".join(at.said)
    assert "FOUND noisy-neighbour" in reported
    assert reported.count("not done: /proj/ingest: user.tierd is off at /proj") == 1
    assert at.filesystem.layout(NOISE.directory) == before
    assert list(at.journal.entries()) == []
    at.filesystem.set_xattr("/proj", "user.tierd", b"")
    at.run(until=150)
    assert [e.outcome for e in at.journal.entries()] == ["done"]


@pytest.mark.parametrize(("mode", "reported", "set_"), [
    ("observe", 0, False), ("recommend", 1, False), ("new-files-only", 0, True)])
def test_a_scope_has_a_mode_of_its_own(tmp_path: Path, mode: str, reported: int, set_: bool) -> None:
    settings = Settings()
    scope = Scope("/proj/ingest", mode)  # type: ignore[arg-type]
    at = world(tmp_path, settings=replace(settings, scopes=(Scope("/proj"), scope)))
    at.run(until=90)
    assert any(s.startswith("FOUND") for s in at.said)
    assert sum(s.startswith(f"RECOMMENDED (mode {mode}): default layout of /proj/ingest") for s in at.said) == reported
    assert any(s.startswith("SET") for s in at.said) is set_


def test_a_scope_has_limits_of_its_own_and_does_not_keep_others_waiting(tmp_path: Path) -> None:
    settings = Settings()
    slow = replace(settings.limits, files_per_second=0.5, burst_seconds=2.0)
    at = world(tmp_path, jobs=(), settings=replace(settings, scopes=(Scope("/slow", limits=slow),)))
    actions = []
    for folder in ("/slow", "/quick"):
        for number in range(4):
            inode = at.cluster.make_file(f"{folder}/{number}", 1000)
            actions.append(Action("migrate", COVERING, "why", FINDING, folder, inode.path, 1000, inode.fid))
    at.gate.submit(actions, 1)
    done = [o.action.path for o in at.gate.pump(at.cluster.epoch + 0.001)]
    assert done == ["/slow/0", "/quick/0", "/quick/1", "/quick/2", "/quick/3"]
    assert at.gate.waiting == 3


def test_paused_stays_paused_over_a_restart(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=(STREAM,))
    at.gate.operating_state.pause("a disk is being changed")
    at.gate.operating_state.store()
    again = world(tmp_path, jobs=(STREAM,))
    assert again.gate.operating_state.paused == "a disk is being changed"
    again.gate.operating_state.resume()
    again.gate.operating_state.store()
    assert world(tmp_path, jobs=(STREAM,)).gate.operating_state.paused == ""


def test_a_plan_leaves_out_single_files_whose_owners_want_that(tmp_path: Path) -> None:
    noise = replace(NOISE, rereads_per_second=8.0, files_per_second=10.0, keep=300)
    at = world(tmp_path, jobs=(STREAM, noise))
    at.gate.operating_state.drain("looking first")
    at.run(until=60)
    ((_, plan, _),) = at.daemon.preview()
    first, second, third, *_ = [action.path for action in plan.actions if action.kind == "migrate"]
    at.filesystem.set_xattr(first, "lustre.pin", b"- pool: hdd\n")
    at.filesystem.set_xattr(second, "user.tierd", b"off")
    at.filesystem.set_xattr(third, "user.tierd", b"on")
    ((_, plan, _),) = at.daemon.preview()
    shown = {action.path for action in plan.actions}
    assert third in shown
    assert not {first, second} & shown
    assert {str(refusal) for refusal in plan.refusals} >= {
        f"{first}: the file is pinned: - pool: hdd",
        f"{second}: user.tierd is off at {second}: the owner opted out"}
