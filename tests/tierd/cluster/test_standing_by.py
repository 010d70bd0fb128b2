"""A standby leads when the claim is free, and not before; a tierd alone stands by for nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tierd.cluster.broker import Broker, new_fsname
from tierd.act.claim import Claim, MountedClaimFolder
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.config.act import ActSettings, ClaimSettings
from tierd.config.settings import Settings
from tierd.daemon import mover_process
from tierd.daemon.process import candidate, stand_by


class Waits:
    """A clock that passes no time, and ends the wait after some rounds."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def now(self) -> float:
        return 1000.0

    def wait(self, seconds: float) -> bool:
        self.rounds -= 1
        return self.rounds <= 0


def node(folder: Path, broker: Broker, fs: str, name: str, said: list[str]) -> Candidate:
    settings = Settings(act=ActSettings(journal=f"{folder}/{name}.sqlite", dry_run=False), cluster=broker.settings())
    clock = SystemClock()
    claim = Claim(MountedClaimFolder(folder / ".tierd"), f"host={name} nonce={name}", clock.monotonic,
                  ClaimSettings(expiry_seconds=3600.0))
    connection = Connection(settings.cluster, "leader")
    assert connection.wait_until_connected(10)
    return Candidate(settings, fs, claim, connection, clock, said.append)


def test_a_standby_leads_after_the_leader_gave_up(shared_broker: Broker, tmp_path: Path) -> None:
    fs, said, noted = new_fsname(), list[str](), list[dict[str, str]]()
    first, second = (node(tmp_path, shared_broker, fs, name, said) for name in ("a", "b"))
    assert stand_by(first, Waits(1), lambda **words: noted.append(words), 1.0)
    assert not stand_by(second, Waits(3), lambda **words: noted.append(words), 1.0)
    assert any("standing by" in sentence and "host a" in sentence for sentence in said)
    assert (first.claim.generation, first.lost, second.lost) == (1, False, False)
    first.close()
    assert stand_by(second, Waits(1), lambda **words: noted.append(words), 1.0)
    assert second.claim.generation == 2
    assert first.lost
    assert {"READY": "1", "STATUS": "standing by"} in noted
    second.close()


def test_a_claim_that_was_lost_is_not_taken_again(shared_broker: Broker, tmp_path: Path) -> None:
    fs, said = new_fsname(), list[str]()
    first = node(tmp_path, shared_broker, fs, "a", said)
    assert first.step()
    MountedClaimFolder(tmp_path / ".tierd").make(f"{2:018d}", "host=other")
    assert first.claim.hold() is not None
    assert first.lost
    assert first.claim.refusal() is not None
    first.close()


@pytest.mark.parametrize("settings", [
    Settings(act=replace(ActSettings(), dry_run=False)),
    Settings(cluster=replace(Settings().cluster, servers=("nats://127.0.0.1:9",)))], ids=["alone", "dry run"])
def test_who_works_alone_is_no_candidate(settings: Settings) -> None:
    assert candidate(settings, SystemClock(), lambda _: None) is None


@pytest.mark.parametrize("settings", [
    Settings(act=replace(ActSettings(), dry_run=False)),
    Settings(cluster=replace(Settings().cluster, servers=("nats://127.0.0.1:9",)))], ids=["no servers", "dry run"])
def test_a_mover_that_may_not_move_does_not_start(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    assert mover_process.serve(settings) == 1
    assert len(caplog.records) == 1
