"""Users' opt-out and pins, at the gate and in plans, over the simulated file system."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.errors import NotPermitted, Unsupported
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.settings import recorded_test_bed
from tests.tierd.later import raising
from tests.tierd.simulated import COVERING, NOISE, STREAM, without_user_xattr, world
from tierd.act.guard import OptOut
from tierd.acts import ActKind
from tierd.config.act import Mode
from tierd.config.scopes import Scope
from tierd.config.settings import Settings
from tierd.model import Action
from tierd.refusal import Reason
from tierd.simulation.world import VirtualClock

FINDING = ("noisy-neighbour", "m", "s")


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(recorded_test_bed())
    made.make_file("/proj/a/b/file", 1000)
    return made


@pytest.fixture
def filesystem(cluster: Cluster) -> SimulatedFilesystem:
    return SimulatedFilesystem(cluster)


def consent(filesystem: SimulatedFilesystem, **more: object) -> OptOut:
    return OptOut(filesystem, VirtualClock(Cluster(recorded_test_bed())), **more)  # type: ignore[arg-type]


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


def test_a_word_that_is_not_understood_counts_as_off(filesystem: SimulatedFilesystem) -> None:
    filesystem.set_xattr("/proj/a", "user.tierd", b" ")
    assert "neither on nor off" in str(consent(filesystem).of_file("/proj/a/b/file"))
    filesystem.set_xattr("/proj/a", "user.tierd", b"\x1b[2Jmaybe\xff")
    said = str(consent(filesystem).of_file("/proj/a/b/file"))
    assert "neither on nor off, so tierd changes nothing there" in said
    assert said.isprintable()


def test_a_file_whose_opt_out_cannot_be_read_is_left_alone(
        filesystem: SimulatedFilesystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "xattr", raising(OSError(errno.EIO, "Input/output error")))
    opt_out = consent(filesystem)
    assert "the file: Input/output error" in str(opt_out.of_file("/proj/a/b/file"))
    assert "cannot read the opt-out of /proj: Input/output error" in str(opt_out.of_directory("/proj"))


@pytest.fixture
def unsupported() -> SimulatedFilesystem:
    """Mounted with ``nouser_xattr``, while others have set the attribute."""
    cluster = Cluster(without_user_xattr())
    cluster.make_file("/proj/a/b/file", 1000)
    found = SimulatedFilesystem(cluster)
    found.set_xattr("/proj/a", "user.tierd", b"off")
    return found


def test_an_opt_out_that_the_mount_hides_is_not_ignored(unsupported: SimulatedFilesystem) -> None:
    for refusal in (consent(unsupported).of_file("/proj/a/b/file"), consent(unsupported).of_directory("/proj")):
        assert refusal.reason is Reason.OPT_OUT_UNREADABLE
        assert "mount it with -o user_xattr" in refusal.sentence


def test_with_permission_pins_and_markers_hold_without_attributes(unsupported: SimulatedFilesystem) -> None:
    opt_out = consent(unsupported, without_user_xattr=True)
    assert opt_out.of_file("/proj/a/b/file") is None
    unsupported.set_xattr("/proj/a/b/file", "lustre.pin", b"- pool: hdd\n")
    assert "the file is pinned" in str(opt_out.of_file("/proj/a/b/file"))
    unsupported.set_xattr("/proj/a/b/file", "lustre.pin", b"")
    unsupported._cluster.make_file("/proj/a/.tierd-off", 0)
    later = consent(unsupported, without_user_xattr=True)
    assert str(later.of_file("/proj/a/b/file")) == "/proj/a/.tierd-off exists: the owner opted out"


def test_a_release_without_pins_has_no_pinned_files(cluster: Cluster) -> None:
    class Old(SimulatedFilesystem):
        def xattr(self, path: str, name: str) -> bytes:
            if name == "lustre.pin":
                raise Unsupported(errno.EOPNOTSUPP, "get lustre.pin: Operation not supported")
            return super().xattr(path, name)

    assert consent(Old(cluster)).of_file("/proj/a/b/file") is None


def test_an_empty_file_opts_a_directory_out(filesystem: SimulatedFilesystem, cluster: Cluster) -> None:
    cluster.make_file("/proj/.tierd-off", 0)
    assert str(consent(filesystem).of_directory("/proj/a")) == "/proj/.tierd-off exists: the owner opted out"
    filesystem.set_xattr("/proj", "user.tierd", b"on")
    assert consent(filesystem).of_file("/proj/a/b/file") is not None, "in one directory, off counts"
    filesystem.set_xattr("/proj/a", "user.tierd", b"on")
    assert consent(filesystem).of_file("/proj/a/b/file") is None


def test_in_a_sticky_directory_strangers_opt_nobody_out(filesystem: SimulatedFilesystem, cluster: Cluster) -> None:
    marker = cluster.make_file("/proj/.tierd-off", 0)
    directory = cluster.namespace.lookup("/proj")
    directory.mode, directory.uid, marker.uid = 0o41777, 1000, 1001
    assert consent(filesystem).of_directory("/proj/a") is None
    for uid in (0, 1000):
        marker.uid = uid
        assert consent(filesystem).of_directory("/proj/a") is not None


def test_a_directory_whose_marker_cannot_be_read_is_left_alone(
        filesystem: SimulatedFilesystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "status", raising(NotPermitted(errno.EACCES, "stat: Permission denied", "/proj")))
    refusal = consent(filesystem).of_directory("/proj")
    assert refusal.reason is Reason.OPT_OUT_UNREADABLE


def test_a_mount_that_hides_opt_outs_is_reported_at_the_start_and_nothing_is_done(tmp_path: Path) -> None:
    at = world(tmp_path, bed=without_user_xattr())
    before = at.filesystem.layout(NOISE.directory)
    at.run(until=10)
    assert any("mounted without user_xattr: mount it with -o user_xattr" in words for words in at.said)
    assert "opt-outs" in at.daemon.faults
    at.run(until=120)
    assert "not done: /proj/ingest: users' opt-outs (user.tierd) cannot be read" in "\n".join(at.said)
    assert at.filesystem.layout(NOISE.directory) == before
    assert list(at.journal.entries()) == []


def test_with_permission_tierd_acts_without_the_attribute(tmp_path: Path) -> None:
    settings = Settings()
    settings = replace(settings, act=replace(settings.act, without_user_xattr=True))
    at = world(tmp_path, settings=settings, bed=without_user_xattr())
    at.run(until=120)
    assert "opt-outs" not in at.daemon.faults
    assert [e.outcome for e in at.journal.entries()] == ["done"]


@pytest.mark.parametrize(("mode", "refused", "set_"), [(Mode.OBSERVE, 1, False), (Mode.NEW_FILES_ONLY, 0, True)])
def test_a_scope_has_a_mode_of_its_own(tmp_path: Path, mode: Mode, refused: int, set_: bool) -> None:
    settings = Settings()
    scope = Scope("/proj/ingest", mode)
    at = world(tmp_path, settings=replace(settings, scopes=(Scope("/proj"), scope)))
    at.run(until=90)
    assert any(s.startswith("FOUND") for s in at.said)
    assert sum(s.startswith(f"not done: mode {mode} applies there: 1 act recommended") for s in at.said) == refused
    assert any(s.startswith("SET") for s in at.said) is set_


def test_a_scope_has_limits_of_its_own_and_does_not_keep_others_waiting(tmp_path: Path) -> None:
    settings = Settings()
    slow = replace(settings.limits, files_per_second=0.5, burst_seconds=2.0)
    at = world(tmp_path, jobs=(), settings=replace(settings, scopes=(Scope("/slow", limits=slow),)))
    actions = []
    for folder in ("/slow", "/quick"):
        for number in range(4):
            inode = at.cluster.make_file(f"{folder}/{number}", 1000)
            actions.append(Action(ActKind.MIGRATE, COVERING, "why", FINDING, folder, inode.path, 1000, inode.fid))
    at.gate.submit(actions, 1)
    done = [o.action.path for o in at.gate.pump(at.cluster.epoch + 0.001)]
    assert done == ["/slow/0", "/quick/0", "/quick/1", "/quick/2", "/quick/3"]
    assert at.gate.waiting == 3


def test_a_plan_leaves_out_single_files_whose_owners_want_that(tmp_path: Path) -> None:
    noise = replace(NOISE, rereads_per_second=8.0, files_per_second=10.0, keep=300)
    at = world(tmp_path, jobs=(STREAM, noise))
    at.gate.operating_state.draining = "looking first"
    at.run(until=60)
    ((_, _, plan),) = at.daemon.preview()
    first, second, third, *_ = [action.path for action in plan.actions if action.kind == "migrate"]
    at.filesystem.set_xattr(first, "lustre.pin", b"- pool: hdd\n")
    at.filesystem.set_xattr(second, "user.tierd", b"off")
    at.filesystem.set_xattr(third, "user.tierd", b"on")
    ((_, _, plan),) = at.daemon.preview()
    shown = {action.path for action in plan.actions}
    assert third in shown
    assert not {first, second} & shown
    assert {str(refusal) for refusal in plan.refusals} >= {
        f"{first}: the file is pinned: - pool: hdd",
        f"{second}: user.tierd is off at {second}: the owner opted out"}
