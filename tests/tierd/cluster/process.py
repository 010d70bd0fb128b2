"""A leader (or its standby), or a mover, as a process of its own over a shared Lustre."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lustre.filesystem import Quota
from tests.tierd.act.gate_world import FAST, FINDING
from tests.tierd.act.movers.minilustre import FLASH
from tests.tierd.cluster.shared_lustre import Client
from tierd.act.claim import Claim, ClaimFolder
from tierd.act.gate import Gate
from tierd.act.guard import ActGuard
from tierd.act.journal.writer import Journal
from tierd.act.limits import Budget, CircuitBreaker
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.space_and_quota import Destination
from tierd.act.undo import close_unfinished
from tierd.acts import ActKind
from tierd.clock import SystemClock
from tierd.cluster.connection import Connection
from tierd.cluster.leader import Candidate
from tierd.cluster.messages import Names
from tierd.cluster.mover import Fences, Mover, file_by_fid
from tierd.config.act import ActSettings, ClaimSettings, MoverSettings
from tierd.config.cluster import ClusterSettings
from tierd.config.settings import Settings
from tierd.logs import log_to_standard_error
from tierd.model import Action
from tierd.refusal import Reason, Refusal

RENEW_SECONDS = 0.4
REPORT_SECONDS = 3.0


@dataclass
class Role:
    """Settings of a process, passed as JSON."""

    role: str
    name: str
    lustre: str
    folder: str
    fs: str
    servers: list[str]
    replicas: int = 1
    files: int = 0
    threads: int = 2
    expiry_seconds: float = 3.0
    deadline_seconds: float = 8.0
    ack_wait_seconds: float = 2.0

    @property
    def settings(self) -> Settings:
        return Settings(
            act=ActSettings(journal=f"{self.folder}/{self.name}.sqlite"),
            movers=MoverSettings(engine="lease", at_once=self.threads, per_target_at_once=1),
            cluster=ClusterSettings(tuple(self.servers), replicas=self.replicas, timeout_seconds=1.0,  # type: ignore[arg-type]
                                    ack_wait_seconds=self.ack_wait_seconds, deadline_seconds=self.deadline_seconds))


def say(sentence: str) -> None:
    print(sentence, flush=True)


def no_quota(kind: int, owner: int, pool: str) -> Quota:
    return Quota(0, 0, 0)


def move(role: Role) -> None:
    client = Client(role.lustre)
    calls, port, clock = client.part("calls"), client.part("port"), SystemClock()
    fences = Fences(ClaimFolder(Path(role.folder) / ".tierd"), clock)
    engine = LeaseMover(calls, Destination(port.pools, port.space, no_quota), clock, fences)
    settings = role.settings
    connection = Connection(settings.cluster, "mover")
    mover = Mover(role.name, role.name, connection, Names(role.fs), engine, partial(file_by_fid, calls), port, fences,
                  settings, clock)
    threading.Thread(target=client.beat, args=(role.ack_wait_seconds / 2,), daemon=True).start()
    threads = mover.start()
    while any(thread.is_alive() for thread in threads):
        clock.wait(REPORT_SECONDS)
        say(f"STATE {mover.state()}")


def lead(role: Role) -> None:
    """Move every file to flash, and plan those anew that were not moved."""
    client, settings, clock = Client(role.lustre), role.settings, SystemClock()
    port = client.part("port")
    claim = Claim(ClaimFolder(Path(role.folder) / ".tierd"), f"host={role.name} nonce={role.name}",
                  clock.monotonic, ClaimSettings(expiry_seconds=role.expiry_seconds))
    node = Candidate(settings, role.fs, claim, Connection(settings.cluster, "leader"), clock)
    while not node.step():
        clock.wait(0.2)
    stop = threading.Event()
    threading.Thread(target=lambda: [node.claim.renew() for _ in iter(lambda: stop.wait(RENEW_SECONDS), True)],
                     daemon=True).start()
    journal = Journal(Path(settings.act.journal), copied=True)
    dispatch = node.attach(journal, port, settings)
    engine = LeaseMover(client.part("calls"), Destination(port.pools, port.space, no_quota), clock)
    gate = Gate(port, engine, Budget(FAST, clock.now()), CircuitBreaker(), journal, clock,
                False, SiteOfLeader(node), dispatch=dispatch)
    for entry, outcome, _ in close_unfinished(journal, port, clock.now()):
        if outcome != "done":
            say(f"found {entry.place} {outcome}")
    stored = gate.queue.earlier  # every file that is not moved is planned anew
    gate.requeue([], [(each, Refusal(Reason.OUT_OF_DATE, "")) for each in stored])
    finding = journal.add_finding(FINDING)
    paths = [f"/d/{number}" for number in range(role.files)]
    reported = 0.0
    while not node.lost:
        if not gate.waiting and not gate.under_way:
            paths = [path for path in paths if port.layout(path).components[0].pool != "flash"]
            if not paths:
                break
            gate.submit([Action(ActKind.MIGRATE, FLASH, "", FINDING.key, "/d", path, 100) for path in paths], finding)
        done = gate.pump(clock.now() + 0.5) + gate.attend()
        if not done:
            clock.wait(0.05)
        if clock.now() > reported + REPORT_SECONDS:
            reported = clock.now()
            say(f"STATE waiting={gate.waiting} under_way={gate.under_way} {dict(dispatch.by_source)} "
                f"{dispatch.trouble()} halt={gate._halt()} room={dispatch.room()} {dispatch.counts} "
                f"{gate.queue.waits_for} {gate.completed_acts.reasons.most_common(3)}")
        if gate.operating_state.paused:
            say(f"PAUSED {gate.operating_state.paused}")
    if not node.lost:
        node.detach()
        say(f"FINISHED expired={dispatch.counts.expired} stale={dispatch.counts.stale} "
            f"redelivered={dispatch.counts.redelivered}")
    else:
        say("LOST")
    stop.set()
    journal.close()
    node.close()


class SiteOfLeader(ActGuard):
    """Refuses acts of a process that does not lead."""

    def __init__(self, node: Candidate) -> None:
        self._node = node

    def blocked_by(self) -> Refusal | None:
        return self._node.claim.refusal()



def main(arguments: Sequence[str]) -> None:
    log_to_standard_error()
    role = Role(**json.loads(arguments[0]))
    (lead if role.role == "leader" else move)(role)
