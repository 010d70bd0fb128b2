import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from tests.tierd.site import Site
from tests.tierd.worlds import noise
from tierd.act.journal import retention as rules
from tierd.act.journal.connection import pragma
from tierd.act.journal.entry import Stamp
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.act.staging import Staging, StagingStore
from tierd.acts import DEFAULT_KINDS, ActKind, Outcome, Verdict
from tierd.model import Action, Finding
from tierd.text import printable

MIB = 1 << 20
DAY = 86400.0
YEAR = 365 * DAY
BEFORE = Layout((Component(pool="hdd"),), composite=False)
AFTER = Layout((Component(0, MIB, "flash"), Component(MIB, None, "hdd")))
FINDING = Finding("noisy-neighbour", 1.0, "m", "s", ("lustre-OST0002",), "…", noise(), ("/proj",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def prune(journal: Journal, now: float, keep_seconds: float = YEAR, in_use: tuple[int, ...] = ()) -> None:
    """One whole pass."""
    for _ in range(10_000):
        journal.retention.step(now, keep_seconds, in_use)
        if journal.retention.pause_seconds(now) > rules.PORTION_SECONDS:
            return
    raise AssertionError("the pass does not end")


def act(journal: Journal, finding: int, at: float, outcome: str = "done", kind: str = "migrate",
        place: str = "/proj/a", size_bytes: int = 10, seconds: float = 1.0) -> int:
    directory, path = (place, "") if kind in DEFAULT_KINDS else ("", place)
    action = Action(ActKind(kind), AFTER, "because", FINDING.key, directory, path, size_bytes)
    before = None if kind == ActKind.SET_DEFAULT_STRIPING else BEFORE
    number = journal.intend(action, finding, before, at, dry_run=False)
    if outcome == "undoing":
        journal.begin_undo(number, at + seconds)
    elif outcome:
        journal.end(number, Outcome(outcome), "", at + seconds)
    return number


def newest(journal: Journal, at: float) -> None:
    """A record of now: the last number of each table stays, so that none is given twice."""
    act(journal, journal.add_finding(replace(FINDING, time=at)), at)


def ids(journal: Journal) -> set[int]:
    return {entry.id for entry in journal.entries()}


def test_tierd_knows_its_mirrors_for_as_long_as_they_are_there(path: Path) -> None:
    """Else the space on flash of a file that was unused for a year would be lost."""
    journal, file, other = Journal(path), Fid(1, 1), Fid(1, 2)
    mirrored = Layout((Component(pool="hdd", mirror_id=1), Component(pool="flash", mirror_id=2)), mirror_count=2)
    for fid, layout in ((file, mirrored), (other, mirrored), (other, BEFORE)):
        action = Action(ActKind.MIGRATE, layout, "because", FINDING.key, "/proj", "/proj/a", 10)
        journal.end(journal.intend(action, journal.add_finding(FINDING), BEFORE, 10.0, dry_run=False, fid=fid),
                    Outcome.DONE, "", 11.0)
    newest(journal, 2 * YEAR)
    prune(journal, 2 * YEAR)
    assert ids(journal) == {1, 4}, "the mirror of the other file was removed"
    assert journal.made_mirrors(file, mirrored)


def test_the_last_verdicts_of_a_class_stay_however_old_they_are(path: Path) -> None:
    """What such acts came to decides about the next one, though it comes years later."""
    journal = Journal(path)
    for number in range(30):
        finding = journal.add_finding(replace(FINDING, time=float(number)))
        journal.judgements.add(finding, FINDING.kind, "flash", MIB, Verdict.HELPED, number / 30, float(number))
    expected = journal.judgements.won_back(FINDING.kind, "flash", MIB)
    newest(journal, 5 * YEAR)
    prune(journal, 5 * YEAR)
    assert journal.judgements.won_back(FINDING.kind, "flash", MIB) == expected
    assert len(expected) == rules.JUDGEMENTS_USED
    (left,) = journal.db.execute("SELECT count(*) FROM judgements").only()
    assert left == rules.JUDGEMENTS_USED


def test_a_portion_is_small_and_a_finished_pass_rests(path: Path) -> None:
    journal = Journal(path)
    finding = journal.add_finding(FINDING)
    with journal.transaction():
        for number in range(3 * rules.PORTION):
            act(journal, finding, float(number))
    newest(journal, 2 * YEAR)
    left = [len(ids(journal))]
    while len(ids(journal)) > 1:
        journal.retention.step(2 * YEAR, YEAR)
        left.append(len(ids(journal)))
    assert max(before - after for before, after in pairwise(left)) == rules.PORTION
    prune(journal, 2 * YEAR)
    act(journal, finding, 30.0)
    act(journal, finding, 2 * YEAR)
    journal.retention.step(2 * YEAR + 1, YEAR)
    assert len(ids(journal)) == 3
    prune(journal, 2 * YEAR + rules.PASS_SECONDS + 1)
    assert len(ids(journal)) == 2


KILLED = f"""
import os, signal, sys
from pathlib import Path
from tierd.act.journal import retention
from tierd.act.journal.writer import Journal

retention.PORTION = 40
for line in sys.stdin:
    left = int(line)

    def statement(_):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        journal = Journal(Path(sys.argv[1]))
        journal.db.raw.set_trace_callback(statement)
        for _ in range(100):
            journal.retention.step({2 * YEAR}, {YEAR})
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def test_a_kill_at_any_statement_loses_and_doubles_nothing(path: Path) -> None:
    """Killed with -9 at one statement after the other: rows and sums always add up to what was done."""
    journal = Journal(path)
    with journal.transaction():
        for number in range(10):
            finding = journal.add_finding(replace(FINDING, time=float(number)))
            for _ in range(20):
                act(journal, finding, float(number), size_bytes=3)
    newest(journal, 2 * YEAR)
    journal.close()
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], cwd=Path(__file__).parents[4], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
    assert process.stdin is not None
    assert process.stdout is not None
    left = []
    for statements in (3, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 30):
        process.stdin.write(f"{statements}\n")
        assert int(process.stdout.readline()) == signal.SIGKILL
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            left.append(db.execute("SELECT count(*) FROM actions").fetchone()[0])
    process.communicate()
    assert left[0] == 201 > left[-1]
    again = Journal(path)
    prune(again, 2 * YEAR)
    assert len(ids(again)) == 1


@dataclass(frozen=True)
class Past:
    """An act, and how long it took."""

    finding: int
    at: int
    seconds: int
    outcome: str
    kind: str

    def is_kept(self, before: float, protected: set[int]) -> bool:
        return (self.at + self.seconds >= before or self.finding in protected or self.outcome in {"", "undoing"}
                or (self.kind in DEFAULT_KINDS and self.outcome == "done"))


PAST = st.builds(Past, st.integers(1, 5), st.integers(0, 1000), st.integers(0, 400),
                 st.sampled_from(["done", "failed", "refused", "undone", "undoing", "", "dry-run"]),
                 st.sampled_from(["migrate", "set-default-layout", "set-default-striping"]))


IN_USE, WAITING = 1, 2
"""Findings: one that is a case, and one that has waiting moves."""


@settings(max_examples=40)
@given(acts=st.lists(PAST, min_size=10, max_size=30), keep_seconds=st.sampled_from((0.0, 150.0, 300.0, 450.0, 600.0)))
def test_what_has_ended_and_is_not_in_use_is_removed(
        tmp_path_factory: pytest.TempPathFactory, acts: list[Past], keep_seconds: float) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.sqlite"
    journal, reader = Journal(path), JournalReader(path)
    for number in range(1, 7):  # the last one has no acts
        assert journal.add_finding(replace(FINDING, time=100.0 * number)) == number
        journal.add_messages(number, ["a sentence about it"], 100.0 * number)
        journal.judgements.add(number, FINDING.kind, "flash", MIB, list(Verdict)[number % len(Verdict)], 0.5, 1.0)
    journal.queue.add([Action(ActKind.MIGRATE, AFTER, "", FINDING.key, path="/proj/b")], WAITING,
                      Stamp("fs", False, 1.0))
    with journal.transaction():
        for number, past in enumerate(acts, 1):
            assert number == act(journal, past.finding, past.at, past.outcome, past.kind, f"/proj/{number % 7}/a", 10,
                                 past.seconds)
    won_back = journal.judgements.won_back(FINDING.kind, "flash", MIB)
    prune(journal, 1000.0, keep_seconds, (IN_USE,))
    assert journal.judgements.won_back(FINDING.kind, "flash", MIB) == won_back
    before, protected = 1000.0 - keep_seconds if keep_seconds else -1e18, {IN_USE, WAITING}
    kept = {number for number, past in enumerate(acts, 1)
            if past.is_kept(before, protected) or number == len(acts)}  # its number is never given to another
    assert ids(journal) == kept
    assert journal.act_directories.all() >= {
        f"/proj/{number % 7}" for number, past in enumerate(acts, 1)
        if number not in kept and past.outcome == "done" and past.kind == "migrate"}, "they may hold files on flash"
    findings = {number for number in range(1, 7) if 100.0 * number >= before or number in protected or number == 6
                or number in {acts[each - 1].finding for each in kept}}
    assert {number for number in range(1, 7) if journal.key_of_finding(number) is not None} == findings
    assert {number for (number,) in journal.db.execute("SELECT finding FROM told")} <= findings
    if len(kept) < len(acts) or len(findings) < 6:
        assert reader.complete_since() == before
    journal.close()


def test_points_of_curves_are_removed_after_ninety_days_whatever_the_settings(path: Path) -> None:
    journal = Journal(path)
    for day in range(10, 120, 10):
        journal.add_samples({"findings": 1.0, "waiting moves": 2.0}, day * DAY)
    prune(journal, 110 * DAY, keep_seconds=0.0)
    assert journal.db.execute("SELECT min(time) FROM samples").only() == (20 * DAY,)


def test_records_of_a_scheduler_are_removed_by_age_once_the_clock_counts(path: Path) -> None:
    journal, ended = Journal(path), Staging("17", 1, 1, "promote", "/proj/a", 9.0, 1, 1, 0.0)
    stagings = StagingStore(journal.db)
    for ended_at in (0.0, 5 * DAY, 31 * DAY):
        stagings.put(replace(ended, ended_at=ended_at))
    journal.db.execute("INSERT INTO scheduler_jobs VALUES ('17', 17, 'train', 'alice', '', '', '/proj', ?)", (DAY,))

    def left() -> tuple[list[int], int]:
        return ([each.id for each in stagings.of_job("17", 9)],
                journal.db.execute("SELECT count(*) FROM scheduler_jobs").only()[0])

    newest(journal, 34 * DAY)
    run_until(journal, 34 * DAY, 36 * DAY)
    assert left() == ([1, 3], 1), "the first one is open"
    run_until(journal, 5 * YEAR, 5 * YEAR + DAY / 2)
    assert left() == ([1, 3], 1), "the clock was ahead for a while"
    run_until(journal, 5 * YEAR + DAY / 2, 5 * YEAR + 2 * DAY)
    assert left() == ([1], 0)


def test_a_directory_that_was_removed_is_forgotten(path: Path) -> None:
    journal = Journal(path)
    for place in ("/proj/sub/a", "/proj/a"):
        act(journal, journal.add_finding(FINDING), 10.0, place=place)
    assert journal.act_directories.all() == {"/proj/sub", "/proj"}
    journal.act_directories.forget("/proj/sub")
    journal.close()
    assert Journal(path).act_directories.all() == {"/proj"}


def run_until(journal: Journal, start: float, end: float) -> None:
    """Cycles of a daemon that removes what is older than a year."""
    while start <= end:
        journal.remove_old(start, YEAR)
        start += 600.0


def test_a_clock_that_jumps_ahead_removes_nothing_before_it_has_held_for_a_day(path: Path) -> None:
    journal = Journal(path)
    number = act(journal, journal.add_finding(FINDING), 10.0)
    newest(journal, 1000.0)
    run_until(journal, 1000.0, 3 * DAY)
    run_until(journal, 5 * YEAR, 5 * YEAR + DAY / 2)
    newest(journal, 5 * YEAR + DAY / 2)  # records of the wrong time do not confirm it
    journal.close()
    journal = Journal(path)  # nor does a restart
    run_until(journal, 5 * YEAR + DAY / 2, 5 * YEAR + DAY - 601)
    assert number in ids(journal)
    run_until(journal, 3 * DAY, 8 * DAY)  # the clock is set right
    assert number in ids(journal)
    run_until(journal, 5 * YEAR, 5 * YEAR + 2 * DAY)
    assert number not in ids(journal), "a clock that holds for a day counts"


@pytest.mark.parametrize(("silent", "days", "stays"), [
    (0.5 * DAY, 0.1, False),  # a usual restart
    (30 * DAY, 0.9, True), (30 * DAY, 1.1, False),  # tierd did not run for a month, or the clock is ahead
    (-30 * DAY, 0.9, True), (-30 * DAY, 1.1, False),  # the newest record is of the future
])
def test_at_a_start_the_clock_is_compared_with_the_newest_record(path: Path, silent: float, days: float,
                                                                stays: bool) -> None:
    journal = Journal(path)
    number = act(journal, journal.add_finding(FINDING), 10.0)
    newest(journal, 3 * YEAR)
    start = 3 * YEAR + silent
    run_until(journal, start, start + days * DAY)
    assert (number in ids(journal)) is stays


def action(directory: str = "/proj") -> Action:
    return Action(ActKind.SET_DEFAULT_LAYOUT, AFTER, "because", FINDING.key, directory=directory)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.sqlite")


def test_nobody_else_reads_whose_files_were_moved(tmp_path: Path) -> None:
    before = os.umask(0o022)  # of a shell, where the unit has a stricter one
    try:
        made = Journal(tmp_path / "journal.sqlite")
        made.add_finding(FINDING)
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
        made.close()
    finally:
        os.umask(before)


def test_of_very_many_sentences_about_a_finding_the_last_are_shown(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    number = journal.add_finding(FINDING)
    journal.add_messages(number, map(str, range(1001)), 5.0)  # of an imbalance that holds for days
    shown = [message.sentence for message in JournalReader(tmp_path / "journal.sqlite").messages(number)]
    assert (len(shown), shown[0], shown[-1]) == (1000, "1", "1000")


def test_a_kill_leaves_the_whole_state_or_that_of_before(journal: Journal) -> None:
    journal.db.raw.execute("CREATE TRIGGER kill BEFORE INSERT ON state WHEN NEW.name = 'paused_until' "
                           "BEGIN SELECT RAISE(ABORT, 'killed'); END")
    with pytest.raises(sqlite3.IntegrityError):
        journal.set_state({"paused": "maintenance", "paused_until": "5.0"})
    assert journal.state() == {}


def test_after_an_outcome_that_a_power_cut_may_lose_the_next_intent_is_on_the_disk(journal: Journal) -> None:
    act = journal.intend(action(), journal.add_finding(FINDING), BEFORE, 2.0, dry_run=False)
    journal.end(act, Outcome.DONE, "", 3.0)
    assert pragma(journal.db, "synchronous") == 2, "FULL"


def test_moved_since_counts_real_moves_only(journal: Journal) -> None:
    def moved(outcome: Outcome | None, ended_at: float, size_bytes: int, *, dry_run: bool = False) -> None:
        move = Action(ActKind.MIGRATE, AFTER, "because", FINDING.key, path="/proj/a", size_bytes=size_bytes)
        number = journal.intend(move, finding, BEFORE, 2.0, dry_run=dry_run)
        if outcome:
            journal.end(number, outcome, "", ended_at)

    finding = journal.add_finding(FINDING)
    assert journal.moved_since(0.0) == (0, 0)
    moved(Outcome.DONE, 5.0, 1)
    assert journal.moved_since(6.0) == (0, 0)
    moved(Outcome.DONE, 10.0, 20)
    moved(Outcome.GAVE_WAY, 10.0, 300)
    moved(Outcome.UNDONE, 10.0, 4000)
    moved(None, 0.0, 50_000)
    moved(Outcome.REFUSED, 10.0, 6)
    moved(Outcome.DRY_RUN, 10.0, 7, dry_run=True)
    journal.end(journal.intend(action(), finding, BEFORE, 9.0, dry_run=False), Outcome.DONE, "", 10.0)
    assert journal.moved_since(6.0) == (5, 20 + 300 + 2 * 4000 + 50_000)


def test_only_the_last_move_of_a_file_says_whether_it_was_done(journal: Journal) -> None:
    finding = journal.add_finding(FINDING)
    for path, outcomes in (("/proj/late", (Outcome.GAVE_WAY, Outcome.DONE)), ("/proj/busy", (Outcome.GAVE_WAY,)),
                           ("/proj/again", (Outcome.FAILED, None))):
        for outcome in outcomes:
            move = Action(ActKind.MIGRATE, AFTER, "because", FINDING.key, path=path, size_bytes=1)
            act = journal.intend(move, finding, BEFORE, 2.0, dry_run=False)
            if outcome is not None:
                journal.end(act, outcome, "somebody writes", 3.0)
    assert StagingStore(journal.db).reasons(finding) == {"somebody writes": 1}
    assert journal.reader.not_moved(finding, 0.0) == [("somebody writes", 1, "/proj/busy")]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.text(st.characters(codec=None), max_size=40))
def test_words_may_hold_anything_and_are_kept_for_a_terminal(journal: Journal, words: str) -> None:
    """Messages of ``lfs`` contain the file's name, which need not be valid text."""
    number = journal.add_finding(replace(FINDING, sentence=words))
    act = journal.intend(replace(action(), reason=words), number, BEFORE, 2.0, dry_run=False)
    journal.end(act, Outcome.FAILED, words * 1000, 3.0)
    journal.add_messages(number, [words], 3.0)
    journal.queue.add([replace(action(), path="/proj/a", reason=words)], number, Stamp("lustre", False, 1.0))
    entry = journal.entry(act)
    assert entry.detail.isprintable()
    assert entry.reason == printable(words)


MOVED = Fid(0x200000400, 7)
CYCLE: list[Callable[[Journal], object]] = [
    lambda j: j.was_moved(MOVED, 5.0), lambda j: j.is_counted_as_moved(MOVED, 5.0), lambda j: j.moved_since(5.0),
    lambda j: j.undone_at("/proj"), lambda j: j.judgements.won_back("noisy-neighbour", "flash", MIB),
    lambda j: j.act_directories.all(), lambda j: j.files_tried(1), lambda j: j.unfinished(),
    lambda j: j.judgements.default_layouts_in_force(), lambda j: j.judgements.version_of_default_layouts(),
    lambda j: list(j.judgements.acted_on(5.0)),
    lambda j: j.acts_in_force(1), lambda j: j.acts_to_undo(1), lambda j: j.was_removed(1, "findings"),
    lambda j: j.entry(1), lambda j: j.queue.remove(["/proj/a"]), lambda j: prune(j, 2 * YEAR),
    lambda j: StagingStore(j.db).of_job("17", 9), lambda j: StagingStore(j.db).open(),
]
"""What the daemon asks of its journal in a cycle, at its start and at an undo, and for each job of a scheduler."""
SMALL = {"waiting_moves", "waiting_orders", "positions", "state", "act_directories", "CONSTANT",
         "unfinished", "undoing", "default_layouts"}
"""Tables, and indexes of a few rows, that do not grow with the number of acts."""


def scans(path: Path, statements: set[str]) -> list[str]:
    """Those that read a whole table that grows with the number of acts."""
    found = []
    with closing(sqlite3.connect(path)) as db:
        for statement in sorted(statements):
            if statement.split(" ", 1)[0] not in {"SELECT", "UPDATE", "DELETE", "INSERT"}:
                continue
            for *_, step in db.execute(f"EXPLAIN QUERY PLAN {statement}"):
                words = step.split()
                if words[0] == "SCAN" and words[1].isidentifier() and not {words[1], words[-1]} & SMALL:
                    found.append(f"{step}: {statement}")
    return found


def test_no_question_to_the_journal_reads_a_whole_table(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal, statements = Journal(path), set[str]()
    act(journal, journal.add_finding(FINDING), 10.0)
    newest(journal, 2 * YEAR)
    journal.db.raw.set_trace_callback(statements.add)
    for ask in CYCLE:
        ask(journal)
    journal.db.raw.set_trace_callback(None)
    assert len(statements) > len(CYCLE)
    assert scans(path, statements) == []


def test_no_query_of_a_cycle_reads_a_whole_table(reading: Site) -> None:
    """While files of a case move, and then until the verdict. The walk of flash above 60% full is among CYCLE."""
    statements = set[str]()
    reading.service.journal.db.raw.set_trace_callback(statements.add)
    reading.run(until=reading.cluster.now + 250.0)
    reading.service.journal.db.raw.set_trace_callback(None)
    executed = " ".join(statements)
    for table in ("actions", "judgements", "waiting_moves", "told", "samples", "positions", "state"):
        assert f" {table}" in executed
    assert scans(Path(reading.settings.act.journal), statements) == []
