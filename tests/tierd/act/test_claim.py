"""Two movers of one file system: one acts, the other names it."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.errors import NotLustre
from lustre.mounts import Mount
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.act.gate_world import submitted
from tests.tierd.logged import logged
from tests.tierd.sense.clocks import SettableClock
from tests.tierd.simulated import COVERING, NOISE, STREAM
from tierd.act.claim import Claim, ClaimFolder, describe_holder, read_claim, read_key
from tierd.acts import ActKind
from tierd.config.act import ClaimSettings
from tierd.config.settings import Settings as Configuration
from tierd.model import Action
from tierd.simulation.world import wire

SETTINGS = ClaimSettings(expiry_seconds=60.0)


@pytest.fixture
def folder(tmp_path: Path) -> ClaimFolder:
    return ClaimFolder(tmp_path / ".tierd")


def claim(folder: ClaimFolder, host: str, time: SettableClock) -> Claim:
    return Claim(folder, f"host={host} pid=7 since=2026-11-21T04:50:00Z nonce={host}", time.now, SETTINGS)


def test_no_claim_is_taken_below_the_mount_point_after_an_unmount(tmp_path: Path) -> None:
    folder = ClaimFolder(tmp_path / ".tierd", Mount("scratch", str(tmp_path)))
    mine = claim(folder, "mgmt01", SettableClock())
    assert "not on a mounted Lustre file system" in str(mine.hold())
    assert not (tmp_path / ".tierd").exists()
    with pytest.raises(NotLustre, match="not on a mounted"):
        read_key(folder)


@pytest.mark.parametrize("device", [b"home", b"scratch/proj"])
def test_no_claim_of_another_file_system_or_directory_is_read(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: bytes) -> None:
    """A mover removed the messages of its leader where another one had been mounted meanwhile. Where a subdirectory was
    mounted, paths began there, and no scope applied to them."""
    mounted = b"10.0.0.1@tcp:/%s %s lustre rw 0 0\n" % (device, bytes(tmp_path))
    monkeypatch.setattr(Path, "read_bytes", lambda _: mounted)
    folder = ClaimFolder(tmp_path / ".tierd", Mount("scratch", str(tmp_path)))
    with pytest.raises(NotLustre, match="and not scratch"):
        read_claim(folder)
    monkeypatch.setattr(Path, "read_bytes", lambda _: b"10.0.0.1@tcp:/scratch %s lustre ro 0 0\n" % bytes(tmp_path))
    assert folder.names() == []


@pytest.mark.parametrize("made", [lambda path: path.mkdir(mode=0o755), lambda path: path.symlink_to("."),
                                  pytest.param(lambda path: os.chown(path.mkdir(mode=0o700) or path, 1001, -1),
                                               marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root"))])
def test_a_folder_that_others_may_read_or_change_takes_no_claim(
        folder: ClaimFolder, made: Callable[[Path], None]) -> None:
    """The claim signs what goes to movers. Where users may write in the root, one of them can be first."""
    made(folder.path)
    os.symlink("host=theirs", folder.path / "999")
    why = claim(folder, "mgmt01", SettableClock()).hold()
    assert "not a folder for root only (mode 0700)" in why.sentence
    assert "999" in folder.names()


def test_a_released_claim_is_taken_at_once_with_a_higher_generation(folder: ClaimFolder) -> None:
    time = SettableClock()
    first, second = claim(folder, "mgmt01", time), claim(folder, "mgmt02", time)
    assert (first.hold(), first.refusal(), first.generation) == (None, None, 1)
    assert "another tierd moves files of this file system: host mgmt01, pid 7, since 2026" in str(second.hold())
    assert str(second.refusal()) == "this tierd does not hold the claim of this file system"
    first.release()
    assert first.refusal()
    assert second.hold() is None
    assert second.generation == 2
    assert len(folder.names()) == 1


def test_one_that_lives_is_never_taken_over_whatever_its_clock_says(folder: ClaimFolder) -> None:
    mine, theirs = SettableClock(), SettableClock()
    theirs.at = -5e9
    first, second = claim(folder, "mgmt01", theirs), claim(folder, "mgmt02", mine)
    first.hold()
    for _ in range(20):
        mine.at += 50
        theirs.at += 50
        first.renew()
        assert second.hold()


def test_one_that_is_silent_is_taken_over_and_finds_out_before_it_acts_again(folder: ClaimFolder) -> None:
    mine, theirs = SettableClock(), SettableClock()  # theirs stands still: a virtual machine that was paused
    first, second = claim(folder, "mgmt01", theirs), claim(folder, "mgmt02", mine)
    first.hold()
    assert second.hold()
    mine.at += 59
    assert "takes over when the other has not renewed its claim for 60 s" in str(second.hold())
    mine.at += 1
    assert second.hold() is None
    assert str(first.refusal()) == "another tierd took over this file system"
    assert "host mgmt02" in str(first.hold())
    assert second.refusal() is None


@pytest.mark.parametrize("call", ["make", "touch"])
def test_one_that_cannot_renew_stops_before_another_may_take_over(
        folder: ClaimFolder, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """The claim ages while the call that takes or renews it hangs."""
    time, made = SettableClock(), getattr(folder, call)
    first = claim(folder, "mgmt01", time)
    if call == "touch":
        first.hold()

    def slow(*words: str) -> None:
        made(*words)
        time.at += 31

    monkeypatch.setattr(folder, call, slow)
    assert first.hold() is None
    assert "could not renew the claim of this file system for 31 s" in str(first.refusal())
    monkeypatch.undo()
    assert (first.hold(), first.refusal()) == (None, None)


def test_of_two_who_take_over_at_once_one_gets_it(folder: ClaimFolder) -> None:
    time = SettableClock()

    class Slow(Claim):
        """Somebody is quicker between its look and its try."""

        def _unchanged_for(self, name: str) -> float:
            rival._watched = (name, folder.stamp(name), time.at - 100)
            assert rival.hold() is None
            return 100.0

    claim(folder, "mgmt01", time).hold()
    rival = claim(folder, "mgmt02", time)
    slow = Slow(folder, "host=mgmt03 nonce=3", time.now, SETTINGS)
    assert "took over this file system a moment ago" in str(slow.hold())
    assert slow.refusal()
    assert rival.refusal() is None


def test_a_folder_emptied_by_hand_is_claimed_again(folder: ClaimFolder) -> None:
    first = claim(folder, "mgmt01", SettableClock())
    first.hold()
    for name in folder.names():
        folder.remove(name)
    assert first.refusal()
    assert first.hold() is None
    folder.remove("1".zfill(18))
    second = claim(folder, "mgmt02", SettableClock())
    assert second.hold() is None
    first.give_up()
    assert (second.refusal(), second.generation) == (None, 1), "its claim has the same name"


def test_an_entry_that_was_created_though_an_error_came_back_is_its_own(
        folder: ClaimFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(link: str, name: Path) -> None:
        symlink(link, name)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    symlink, first = os.symlink, claim(folder, "mgmt01", SettableClock())
    with monkeypatch.context() as patch:
        patch.setattr(os, "symlink", lost)
        assert "Input/output error" in str(first.hold())
    assert (first.hold(), first.refusal(), first.generation) == (None, None, 1)


@pytest.mark.parametrize("failing", ["names", "content", "touch"])
def test_a_file_system_that_does_not_answer_refuses(tmp_path: Path, failing: str) -> None:
    class Failing(ClaimFolder):
        broken = False

        def __getattribute__(self, name: str) -> object:
            if name == failing and object.__getattribute__(self, "broken"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return object.__getattribute__(self, name)

    time = SettableClock()
    folder = Failing(tmp_path)
    first = claim(folder, "mgmt01", time)
    first.hold()
    folder.broken = True
    assert "cannot take the claim" in str(first.hold())
    first.renew()
    time.at += 31 if failing == "touch" else 0
    assert first.refusal()


def test_a_holder_with_odd_characters_does_no_harm_to_a_terminal() -> None:
    assert describe_holder("host=\x1b[2J pid=\n") == "host \\x1b[2J, pid "
    assert describe_holder("\x1b") == "'\\x1b'"


def test_a_user_starts_a_second_tierd(tmp_path: Path) -> None:
    """Both see the noise. The first acts; the second reports why it does not, and takes over after the first ends."""
    cluster = FluidCluster(recorded_test_bed(), (STREAM, NOISE))
    settings = Configuration()
    settings = replace(settings, claim=SETTINGS, act=replace(settings.act, dry_run=False))
    folder = ClaimFolder(tmp_path / ".tierd")
    said = logged()
    sites = {}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        held = Claim(folder, f"host={name} nonce={name}", lambda: cluster.now, SETTINGS)
        sites[name] = wire(cluster, settings, tmp_path / name, claim=held)
    alive = ["a", "b"]
    while cluster.now < 200:
        cluster.advance(5)
        if cluster.now >= 90:
            alive = ["b"]  # killed: nothing is given back
        for name in alive:
            sites[name].daemon.cycle(2)
    assert [e.outcome for e in sites["a"].journal.entries()] == ["done"]
    assert list(sites["b"].journal.entries()) == []  # its plan finds the layout set already
    assert sum("another tierd moves files of this file system: host a" in s for s in said) == 1
    assert "claim: recovered" in said


def test_one_that_is_taken_over_stops_before_its_next_act(tmp_path: Path) -> None:
    cluster = Cluster(recorded_test_bed())
    settings = Configuration()
    settings = replace(settings, act=replace(settings.act, dry_run=False))
    folder, time = ClaimFolder(tmp_path / ".tierd"), SettableClock()
    mine, theirs = claim(folder, "mgmt01", SettableClock()), claim(folder, "mgmt02", time)
    at = wire(cluster, settings, tmp_path, claim=mine)
    assert mine.hold() is None
    inode = cluster.make_file("/proj/in/f", 1000)
    before = inode.layout
    key = ("noisy-neighbour", "m", "s")
    at.gate.submit([Action(ActKind.MIGRATE, COVERING, "why", key, "/proj/in", inode.path, 1000, inode.fid)], 1)
    assert theirs.hold()
    time.at += 60
    assert theirs.hold() is None
    assert at.gate.pump(cluster.epoch + 10) == []
    (refused,) = submitted(at.gate, [Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "why", key, "/proj/in")], 1)
    assert refused.result == "refused"
    assert refused.detail.startswith("another tierd moves files of this file system: host mgmt02, pid 7, since 2026")
    assert inode.layout == before
    assert at.gate.waiting == 1
