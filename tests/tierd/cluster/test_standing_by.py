"""A standby leads when the claim is free, and not before; a tierd alone stands by for nobody."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stack.services import free_ports
from tests.conftest import asked
from tests.tierd.act.gate_world import FINDING
from tests.tierd.act.miniport import MiniPort
from tests.tierd.act.movers.minilustre import MiniLustre
from tests.tierd.cluster.broker import Broker, connected, new_fsname
from tests.tierd.cluster.test_journal_stream import contents
from tests.tierd.logged import logged
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.journal.connection import FULL
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.cli.control import mover_lines
from tierd.cli.tierctl import main
from tierd.clock import Clock, SystemClock
from tierd.cluster.command import candidate
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.cluster.standing_by import StandbyServer
from tierd.config.act import ActSettings, ClaimSettings
from tierd.config.settings import Settings
from tierd.daemon.answers import MoversAnswer, StandbyRow
from tierd.daemon.client import ControlError, ask


class Waits:
    """A clock that passes no time, and ends the wait after some rounds."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def now(self) -> float:
        return 1000.0

    def wait(self, seconds: float) -> bool:
        self.rounds -= 1
        return self.rounds <= 0


def node(folder: Path, broker: Broker, fs: str, name: str, clock: Clock | None = None, port: int = 0) -> Candidate:
    act = ActSettings(journal=f"{folder}/{name}.sqlite", dry_run=False, socket=f"{folder}/tierd.sock")
    settings = Settings(act=act, web=replace(Settings().web, port=port), cluster=broker.settings())
    claim = Claim(ClaimFolder(folder / ".tierd"), f"host={name} nonce={name}", SystemClock().monotonic,
                  ClaimSettings(expiry_seconds=3600.0))
    connection = Connection(settings.cluster, "leader")
    connected(connection)
    return Candidate(settings, fs, claim, connection, clock or SystemClock())


def test_a_standby_leads_after_the_leader_gave_up(shared_broker: Broker, tmp_path: Path) -> None:
    fs, said, noted = new_fsname(), logged(), list[dict[str, str]]()
    clock = Waits(3)
    first, second = (node(tmp_path, shared_broker, fs, name, clock) for name in ("a", "b"))
    assert first.stand_by(lambda **words: noted.append(words), None)
    assert not second.stand_by(lambda **words: noted.append(words), None)
    assert any("standing by" in sentence and "host a" in sentence for sentence in said)
    assert (first.claim.generation, first.lost, second.lost) == (1, False, False)
    first.close()
    assert second.stand_by(lambda **words: noted.append(words), None)
    assert second.claim.generation == 2
    assert first.lost
    assert {"READY": "1", "STATUS": "standing by"} in noted
    second.close()


def test_the_folder_of_the_claim_is_emptied(shared_broker: Broker, tmp_path: Path) -> None:
    """Generations begin again, with another key. Standbys took in nothing from then on, and showed a complete copy."""
    fs = new_fsname()
    first, second, third = (node(tmp_path, shared_broker, fs, name) for name in "abc")
    assert first.step()
    first.close()
    assert second.step()
    journal = Journal(tmp_path / "b.sqlite", copied=True)
    second.attach(journal, MiniPort(MiniLustre()), Settings(cluster=shared_broker.settings()))
    journal.add_finding(FINDING)
    journal.publish()
    journal.close()
    assert not third.step()
    shutil.rmtree(tmp_path / ".tierd")
    second.close()
    leader = node(tmp_path, shared_broker, fs, "b")
    assert [leader.step() for _ in range(3)] == [False, False, True]
    assert leader.claim.generation == 3
    journal = Journal(tmp_path / "b.sqlite", copied=True)
    leader.attach(journal, MiniPort(MiniLustre()), Settings(cluster=shared_broker.settings()))
    journal.add_finding(FINDING)
    journal.publish()
    assert not third.step()
    assert (third.standby.behind_messages, third.standby.problem) == (0, "")
    new = node(tmp_path, shared_broker, fs, "d")
    assert not new.step()
    for name in "cd":
        assert contents(tmp_path / f"{name}.sqlite") == contents(tmp_path / "b.sqlite")
    journal.close()
    for each in (leader, third, new):
        each.close()


def test_a_standby_whose_journal_fails_opens_it_again(shared_broker: Broker, tmp_path: Path) -> None:
    """On a full disk it ended, and systemd gave up after five starts. A removed file it did not miss."""
    fs = new_fsname()
    first, second = (node(tmp_path, shared_broker, fs, name) for name in ("a", "b"))
    assert first.step()
    assert not second.step()
    journal = Journal(tmp_path / "a.sqlite", copied=True)
    first.attach(journal, MiniPort(MiniLustre()), Settings(cluster=shared_broker.settings()))
    journal.add_messages(journal.add_finding(FINDING), ["long " * 20_000], 1.0)
    journal.publish()
    second._follower._copy._db.execute("PRAGMA max_page_count = 1")
    assert not second.step()
    assert second.standby.problem == FULL
    assert not second.step()
    assert (second.standby.problem, second.standby.behind_messages) == ("", 0)
    (tmp_path / "b.sqlite").unlink()
    assert not second.step()
    assert "though it was there" in second.standby.problem
    assert not second.step()
    assert (second.standby.problem, second.standby.behind_messages) == ("", 0)
    assert JournalReader(tmp_path / "b.sqlite").finding(1)
    for each in (first, second):
        each.close()
    journal.close()


@pytest.mark.parametrize("settings", [
    Settings(act=replace(ActSettings(), dry_run=False)),
    Settings(cluster=replace(Settings().cluster, servers=("nats://127.0.0.1:9",)))], ids=["alone", "dry run"])
def test_a_single_tierd_is_not_a_standby(settings: Settings) -> None:
    assert candidate(settings, SystemClock()) is None


class Page:
    """Answers of the port of a standby."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str) -> tuple[int, str]:
        status, _, body = asked(self._port, path)
        return status, body.decode()

    def refuses(self) -> bool:
        try:
            self.get("/")
        except OSError:
            return True
        return False


def serving(node: Candidate, folder: Path) -> StandbyServer:
    settings = Settings(act=ActSettings(socket=f"{folder}/tierd.sock"), web=replace(Settings().web, port=0))
    return StandbyServer(settings, node.names.fs, lambda: node.standby, lambda: node.nats_answers, SystemClock().now)


def test_a_standby_shows_who_leads_and_how_far_its_copy_is(
        shared_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fs = new_fsname()
    first, second = (node(tmp_path, shared_broker, fs, name) for name in ("a", "b"))
    assert first.step()
    journal = Journal(tmp_path / "a.sqlite", copied=True)
    first.attach(journal, MiniPort(MiniLustre()), Settings(cluster=shared_broker.settings()))
    journal.add_finding(FINDING)
    journal.publish()
    assert not second.step()
    server = serving(second, tmp_path)
    page = Page(server.port)
    socket = ["--socket", f"{tmp_path}/tierd.sock"]
    assert main(["status", *socket]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines() == [f"STANDING BY for {fs}; host a leads, generation 1",
                                  "its copy of the journal is complete (message 2)"]
    assert main(["pause", *socket]) == 1
    assert "host a leads" in capsys.readouterr().err
    assert page.get("/healthz") == page.get("/-/ready") == (200, "OK\n")
    assert page.get("/")[1] == f"this tierd stands by for {fs}; host a leads (generation 1)\n"
    text = page.get("/metrics")[1]
    assert f'tierd_standing_by{{fs="{fs}"}} 1.0' in text
    assert f'tierd_leader_generation{{fs="{fs}"}} 1.0' in text
    assert f'tierd_journal_copy_behind_messages{{fs="{fs}"}} 0.0' in text
    assert f'tierd_standby_problem{{fs="{fs}"}} 0.0' in text
    assert f'tierd_nats_up{{fs="{fs}"}} 1.0' in text
    second.connection.close()  # without NATS it could not lead
    assert not second.step()
    assert page.get("/-/ready")[0] == 503
    assert main(["status", *socket]) == 0
    assert "CANNOT LEAD: NATS" in capsys.readouterr().out
    assert f'tierd_nats_up{{fs="{fs}"}} 0.0' in page.get("/metrics")[1]
    server.close()
    journal.close()
    first.close()


def test_the_leader_knows_its_standbys_until_they_lead(shared_broker: Broker, tmp_path: Path) -> None:
    fs = new_fsname()
    first, second = (node(tmp_path, shared_broker, fs, name) for name in ("a", "b"))
    assert first.step()
    journal = Journal(tmp_path / "a.sqlite", copied=True)
    dispatch = first.attach(journal, MiniPort(MiniLustre()), Settings(cluster=shared_broker.settings()))
    dispatch.trouble()
    assert dispatch.state().standbys == ()
    assert not second.step()
    dispatch._movers_at = float("-inf")  # the next look is in two seconds
    dispatch.trouble()
    (found,) = dispatch.state().standbys
    assert (found.name, found.behind_messages, found.copy_age_seconds, found.problem) == ("b", 0, 0.0, "")
    lines = mover_lines(MoversAnswer(time=1.0, cluster=True, standbys=(
        StandbyRow(name="b", host="b", behind_messages=0, copy_age_seconds=0.0),)))
    assert "  standby b on b: ready to lead; its copy of the journal is complete" in lines
    journal.close()
    first.close()
    assert second.step()
    journal = Journal(tmp_path / "b.sqlite", copied=True)
    dispatch = second.attach(journal, MiniPort(MiniLustre()), Settings(cluster=shared_broker.settings()))
    dispatch.trouble()
    assert dispatch.state().standbys == ()
    journal.close()
    second.close()


def test_the_servers_of_a_standby_close_before_it_leads(shared_broker: Broker, tmp_path: Path) -> None:
    fs, (port,) = new_fsname(), free_ports(0)
    first = node(tmp_path, shared_broker, fs, "a")
    assert first.step()

    class Looks(Waits):
        def wait(self, seconds: float) -> bool:
            assert ask(f"{tmp_path}/tierd.sock", {"request": "status"})["standing_by"]
            assert not Page(port).refuses()
            first.close()
            return False

    second = node(tmp_path, shared_broker, fs, "b", Looks(9), port)
    assert second.stand_by(lambda **_: None, None)
    with pytest.raises(ControlError):
        ask(f"{tmp_path}/tierd.sock", {"request": "status"})
    assert Page(port).refuses()
    second.close()
