"""A site where each job has a number for a name: what was done for those that ended is forgotten, and not lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lustre.layout.model import Component, Layout
from tests.tierd.simulated import world
from tests.tierd.worlds import noise
from tierd.act.outcomes import CompletedAct
from tierd.acts import ActKind, Outcome, Verdict
from tierd.daemon.remediation import MAX_CLOSED, Remediation
from tierd.daemon.states import State
from tierd.model import Action, Finding

JOBS = 100_000
FLASH = Layout((Component(pool="flash"),), composite=False)


def test_closed_cases_of_a_hundred_thousand_jobs_are_forgotten(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=())
    daemon, finding_log = at.daemon, at.daemon.log
    with at.journal.transaction():
        for number in range(JOBS):
            finding = Finding("noisy-neighbour", float(number), f"{number}", f"v{number}", (), "slow", noise(), ())
            finding_log.known.numbers[finding.key] = number
            case = Remediation(
                finding, number, float(number), float(number), FLASH, state=State.CLOSED,
                verdict=Verdict.HELPED, ended_at=float(number),
            )
            daemon.store.add(case)
            if number % 1000 == 0:
                daemon.plan()
    daemon.plan()
    assert [case.number for case in daemon.cases] == list(range(JOBS - MAX_CLOSED, JOBS))
    assert len(finding_log.known.numbers) == MAX_CLOSED


def test_an_open_remediation_or_undo_is_never_forgotten(tmp_path: Path) -> None:
    daemon = world(tmp_path, jobs=()).daemon
    for number in range(3 * MAX_CLOSED):
        finding = Finding("noisy-neighbour", 0.0, f"{number}", "v", (), "it is slow", noise(), ())
        state = {0: State.ACTING, 1: State.JUDGING, 2: State.UNDOING}.get(number, State.CLOSED)
        daemon.store.add(Remediation(finding, number, float(number), float(number), FLASH, state=state, ended_at=1.0))
    daemon.plan()
    assert [case.number for case in daemon.cases][:4] == [0, 1, 2, 2 * MAX_CLOSED]


def test_default_layouts_of_forgotten_cases_are_still_undone_when_flash_runs_full(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=())
    finding = Finding("noisy-neighbour", 0.0, "1", "v", (), "it is slow", noise(), ("/proj/in",))
    number = at.journal.add_finding(finding)
    at.cluster.make_directory("/proj/in")
    action = Action(ActKind.SET_DEFAULT_LAYOUT, FLASH, "because", finding.key, "/proj/in")
    at.gate.submit([action], number)
    (outcome,) = at.gate.set_defaults()
    assert outcome.result == "done"
    case = Remediation(
        finding, number, 0.0, 0.0, FLASH, [CompletedAct(action, Outcome.DONE, "", outcome.entry)],
        state=State.CLOSED, ended_at=1.0
    )
    at.daemon.store.add(case)
    for other in range(MAX_CLOSED):
        later = replace(finding, aggressor=f"later{other}")
        at.daemon.store.add(Remediation(later, 0, 9.0, 9.0, FLASH, state=State.CLOSED, ended_at=1.0))
    at.daemon.plan()
    assert finding.key not in {case.finding.key for case in at.daemon.cases}
    full = {target: replace(room, avail_bytes=0) for target, room in at.filesystem.space().items()}
    at.filesystem.space = lambda: full  # type: ignore[method-assign]
    at.run(until=20)
    assert "UNDONE default layout of /proj/in: pool 'flash' is down to its reserve" in at.said
