"""Undo by an administrator: logged, stored with the finding, and not judged by later measurements."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.errors import of_errno
from lustre.filesystem import Filesystem
from lustre.layout.model import Component, Layout
from tests.tierd.act.gate_world import FINDING
from tests.tierd.daemon.test_directory_striping import planned
from tests.tierd.later import raising
from tests.tierd.site import Site
from tierd.act.guard import JobCheck
from tierd.act.journal.entry import Entry
from tierd.act.undo import Search
from tierd.acts import ActKind, Outcome, Verdict
from tierd.daemon.client import ControlError
from tierd.daemon.states import State
from tierd.refusal import Reason, Refusal


@pytest.fixture
def reading(reading: Site) -> Site:
    """The same after its finding has ended."""
    reading.run_until(lambda: not reading.service.daemon.findings, before=100)
    return reading


def test_a_layout_undone_by_hand_ends_its_case(reading: Site) -> None:
    waited = reading.ask("status")["waiting_moves"]
    assert "undone: set-default-layout of /proj/ingest" in reading.shown("undo", "1")
    assert any(sentence.startswith("UNDONE default layout of /proj/ingest: by ") for sentence in reading.said)
    assert any(sentence.startswith(f"dropped {waited} queued moves: ") for sentence in reading.said)
    reading.run(until=reading.cluster.now + 100)
    assert "UNDONE default layout of /proj/ingest: by " in reading.shown("explain", "F1")
    status = reading.shown("status")
    assert "UTC: closed: undone by hand; " in status
    assert "no moves queued" in status
    assert "became eligible since then" not in reading.shown("plan")
    assert reading.sql("SELECT * FROM judgements") == []
    assert not any(sentence.startswith("KEPT") for sentence in reading.said)


def test_undoing_one_of_two_layouts_leaves_the_case_open_and_drops_its_moves(reading: Site) -> None:
    daemon, gate = reading.service.daemon, reading.service.gate
    (case,) = daemon.store
    (outcome,) = case.defaults
    elsewhere = replace(outcome.action, directory="/proj/other")
    case.defaults.append(replace(outcome, action=elsewhere, entry=4711))
    gate.submit([replace(elsewhere, kind=ActKind.MIGRATE, path="/proj/other/f")], case.number)
    assert gate.waiting > 1
    reading.ask("undo", id=1)
    assert [kept.entry for kept in case.defaults] == [4711]
    assert not case.judged
    assert gate.waiting == 1, "moves that depend on the other layout"


def test_one_command_undoes_all_layouts_of_a_finding(reading: Site) -> None:
    reading.run(until=reading.cluster.now + 10)
    moved = [entry.id for entry in reading.service.journal.entries(Outcome.DONE) if entry.kind == "migrate"]
    assert moved
    undone = reading.shown("undo", "F1")
    assert "F1: " in undone
    assert "queued moves dropped, 1 directory default to restore" in undone
    assert "undone: set-default-layout of /proj/ingest: by " in undone
    assert f"left in place (acts {moved[0]} to {moved[-1]})" in undone
    status = reading.ask("status")
    assert (status["waiting_moves"], status["cases"][0]["verdict"]) == (0, "taken-back")
    layout = reading.filesystem.layout("/proj/ingest")
    assert layout is None or layout.components[0].pool != "flash"
    assert "the journal has no finding F77" in reading.failed("undo", "F77")


def test_one_command_restores_a_default_striping_that_is_still_that_of_the_act(site: Site) -> None:
    site.cluster.make_file("/proj/steps/file", 1000)
    site.run(until=5)
    number = site.service.journal.add_finding(FINDING)
    action = planned()
    site.service.gate.submit([action], number)
    assert [act.result for act in site.service.gate.default_layouts.set_next()] == ["done"]
    assert action.striping is not None
    site.filesystem.set_default_striping("/proj/steps", replace(action.striping, stripe_count=1))
    assert "somebody has changed the default striping since" in site.failed("undo", f"F{number}")
    site.filesystem.set_default_striping("/proj/steps", action.striping)
    undone = site.shown("undo", f"F{number}")
    assert "0 queued moves dropped, 1 directory default to restore" in undone
    assert "undone: set-default-striping of /proj/steps: by " in undone
    assert site.filesystem.default_striping("/proj/steps") is None
    assert site.service.journal.undone_at("/proj/steps"), "it is not set again at once"


def test_undo_of_a_removed_record_says_that_it_was_removed(reading: Site) -> None:
    reading.run(until=reading.cluster.now + 10)
    journal = reading.service.journal
    assert len(list(journal.entries())) > 1
    journal.add_finding(next(iter(reading.service.daemon.store)).finding)
    reading.sql("DELETE FROM actions WHERE id = 1")
    with pytest.raises(ControlError, match=r"the record of act 1 was removed from the journal after 365 days "
                                           r"\(\[journal\] keep_days\), so it can no longer be undone"):
        reading.ask("undo", id=1)
    reading.sql("DELETE FROM actions WHERE finding = 1 AND id != (SELECT max(id) FROM actions)",
                "UPDATE actions SET finding = 2", "DELETE FROM told", "DELETE FROM waiting_moves",
                "DELETE FROM findings WHERE id = 1")
    with pytest.raises(ControlError, match="the record of finding F1 was removed from the journal after 365 days"):
        reading.ask("undo", id="F1")
    with pytest.raises(ControlError, match="the journal has no act 4711"):
        reading.ask("undo", id=4711)


def test_moves_are_dropped_before_the_first_of_many_layouts_is_restored(reading: Site,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """They went on until the last of 29 had been."""
    waiting: list[int] = []
    change = reading.filesystem.set_default_layout

    def watched(directory: str, layout: Layout | None, _: object = None) -> None:
        waiting.append(reading.service.gate.waiting)
        change(directory, layout)

    assert reading.service.gate.waiting
    monkeypatch.setattr(reading.filesystem, "set_default_layout", watched)
    reading.ask("undo", id="F1")
    assert waiting[0] == 0


def test_a_layout_from_before_a_restart_is_undone_once(site: Site) -> None:
    site.run(until=55)
    site.service.journal.judgements.add(1, "noisy-neighbour", "flash", 1 << 20, Verdict.HELPED, 1.0, 1.0)
    site.restart()
    assert site.ask("undo", id=1)["result"] == "undone"
    full = {target: replace(room, avail_bytes=0) for target, room in site.filesystem.space().items()}
    site.filesystem.space = lambda: full  # type: ignore[method-assign]  # a flash pool that has run full since
    site.run(until=site.cluster.now + 10)
    assert sum("default layout of /proj/ingest" in sentence and "SET" not in sentence for sentence in site.said) == 1


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_long_search_goes_on_after_a_restart(site: Site, monkeypatch: pytest.MonkeyPatch, *, by_hand: bool) -> None:
    step = Search.step

    def one(self: Search, filesystem: Filesystem, entry: Entry, _: object) -> None:
        begun = iter((False,))
        step(self, filesystem, entry, lambda: next(begun, True))

    monkeypatch.setattr(Search, "step", one)
    site.run(until=55)
    below = ["/proj/ingest/new", *(f"/proj/ingest/new/{number}" for number in range(20))]
    for place in below:
        site.cluster.make_file(f"{place}/file", 1000)
        site.filesystem.set_default_layout(place, site.filesystem.layout("/proj/ingest"))  # as mkdir does it
    (case,) = site.service.daemon.store
    if by_hand:
        assert "tierd continues with the directories below" in site.shown("undo", "F1")
    else:
        case.verdict = Verdict.DID_NOT_HELP
        case.begin_undo("it did not help")
        site.run(until=site.cluster.now + 10)
    assert case.state in {State.UNDONE, State.CLOSED}
    assert [entry.outcome for entry in site.service.journal.entries() if entry.id == 1] == [Outcome.UNDOING]
    site.restart()
    site.run(until=site.cluster.now + 200)
    assert not any("flash" in str(site.filesystem.layout(place)) for place in below)
    assert [entry.outcome for entry in site.service.journal.entries() if entry.id == 1] == [Outcome.UNDONE]
    assert sum(sentence.startswith("UNDONE default layout of /proj/ingest: ") for sentence in site.said) == 1


def test_directories_below_one_another_are_not_restored_at_the_same_time(site: Site) -> None:
    """The search below the lower one restored what the upper one's undo was about to replace."""
    site.run(until=55)
    (case,) = site.service.daemon.store
    (upper,) = case.defaults
    places = "/proj/ingest", "/proj/ingest/new", "/proj/ingest/new/deeper"
    for place in places[1:]:
        site.cluster.make_file(f"{place}/file", 1000)
        site.filesystem.set_default_layout(place, upper.action.layout)  # as mkdir does it
    larger = Layout((Component(0, 8 << 20, "flash"), Component(8 << 20, None, "hdd")))
    queue = site.service.gate.default_layouts
    queue.jobs = JobCheck()
    queue.add([replace(upper.action, directory=places[1], layout=larger)], case.number)
    case.defaults += queue.set_next()
    assert [each.result for each in case.defaults] == ["done", "done"]
    site.filesystem.set_default_layout(places[2], larger)  # made meanwhile
    case.verdict = Verdict.DID_NOT_HELP
    case.begin_undo("it did not help")
    with ThreadPoolExecutor(1) as ended:
        site.service.daemon.undoing._executor = ended
    site.service.daemon.undoing.go_on()  # nothing can be done at the same time any more
    assert case.defaults == []
    assert not any("flash" in str(site.filesystem.layout(place)) for place in places)


def test_a_taking_back_that_is_to_be_tried_again_is_over_with_one_by_hand(reading: Site) -> None:
    (case,) = reading.service.daemon.store
    case.begin_undo("it did not help")  # which failed
    assert reading.ask("undo", id=1)["result"] == "undone"
    assert (case.state, case.undo_reason) == (State.CLOSED, ""), "the finding has ended meanwhile"


@pytest.mark.parametrize("name", ["F1", "1"])
def test_what_an_undo_by_hand_could_not_restore_is_not_said_to_be_undone(
        reading: Site, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (case,) = reading.service.daemon.store
    before = case.state, case.verdict
    with monkeypatch.context() as unanswered:
        unanswered.setattr(reading.filesystem, "set_default_layout", raising(of_errno(5, "set layout", "/proj/ingest")))
        assert "set layout: Input/output error" in reading.failed("undo", name)
    assert (case.state, case.verdict, len(case.defaults)) == (*before, 1)
    assert (reading.service.gate.waiting == 0) == (name == "F1"), "its moves are dropped at once"
    reading.shown("undo", name)
    assert (case.state, case.verdict, case.defaults) == (State.CLOSED, Verdict.UNDONE_BY_HAND, [])


def test_an_undo_by_hand_that_is_held_ends_no_undo_for_a_verdict(reading: Site) -> None:
    (case,) = reading.service.daemon.store
    pause = Path(reading.settings.act.pause_file)
    pause.write_text("a look at the disks", "utf-8")
    reading.service.journal.judgements.add(1, "noisy-neighbour", "flash", 1 << 20, Verdict.DID_NOT_HELP, 0.0, 1.0)
    case.verdict = Verdict.DID_NOT_HELP
    case.begin_undo("it did not help")
    assert "a look at the disks" in reading.failed("undo", "F1")
    assert (case.state, case.verdict) == (State.UNDOING, Verdict.DID_NOT_HELP)
    assert reading.sql("SELECT verdict FROM judgements") == [("did-not-help",)]
    pause.unlink()
    reading.run(until=reading.cluster.now + 10)
    assert (case.state, case.defaults) == (State.CLOSED, [])
    assert [entry.outcome for entry in reading.service.journal.entries() if entry.id == 1] == [Outcome.UNDONE]


@pytest.mark.parametrize("held", [True, False])
def test_an_undo_goes_on_where_one_by_hand_was_under_way_or_a_pause_began(reading: Site, *, held: bool) -> None:
    (case,) = reading.service.daemon.store
    undo, entry = reading.service.daemon.undoing, reading.service.journal.entry(1)
    assert entry is not None
    change, pause = reading.filesystem.set_default_layout, Path(reading.settings.act.pause_file)
    case.begin_undo("it did not help")

    def slow(directory: str, layout: Layout | None, _: object = None) -> None:
        """An undo by hand, whose request hangs and then fails, while the judge's thread goes on."""
        reading.filesystem.set_default_layout = change  # type: ignore[method-assign]
        undo.go_on()
        raise of_errno(110, "set layout", directory)

    if held:
        ask_held, answers = undo.act.held, iter((None, Refusal(Reason.PAUSED, "just now")))
        undo.act.held = lambda: next(answers, Refusal(Reason.PAUSED, "just now"))
        undo.go_on()
        undo.act.held = ask_held
    else:
        reading.filesystem.set_default_layout = slow  # type: ignore[method-assign, assignment]
        assert undo.act_by_hand(entry, "root")[0].outcome == "failed"
    assert not pause.exists()
    assert (case.state, len(case.defaults)) == (State.UNDOING, 1)
    undo.go_on()
    assert case.defaults == []


def test_a_failed_undo_is_no_success(site: Site) -> None:
    site.run(until=55)
    site.shown("undo", "1")
    reported = len(site.said)
    assert site.failed("undo", "1") == (
        "refused: set-default-layout of /proj/ingest: the act is undone, so there is nothing to undo\n")
    status, printed, _ = site.tierctl("undo", "1", "--json")
    assert status == 1
    assert '"result": "refused"' in printed
    assert site.said[reported:] == []
