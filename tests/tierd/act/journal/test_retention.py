from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from tests.tierd.worlds import noise
from tierd.act.journal import retention as rules
from tierd.act.journal.entry import Stamp
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.writer import Journal
from tierd.acts import DEFAULT_KINDS, ActKind, Outcome, Verdict
from tierd.model import Action, Finding

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
        place: str = "/proj/a", size_bytes: int = 10) -> int:
    directory, path = (place, "") if kind in DEFAULT_KINDS else ("", place)
    action = Action(ActKind(kind), AFTER, "because", FINDING.key, directory, path, size_bytes)
    before = None if kind == ActKind.SET_DEFAULT_STRIPING else BEFORE
    number = journal.intend(action, finding, before, at, dry_run=False)
    if outcome == "undoing":
        journal.begin_undo(number, at + 1)
    elif outcome:
        journal.end(number, Outcome(outcome), "", at + 1)
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


@pytest.mark.parametrize(("outcome", "kind", "stays"), [
    ("done", "migrate", False), ("undone", "set-default-layout", False), ("refused", "migrate", False),
    ("dry-run", "set-default-layout", False), ("failed", "migrate", False),
    ("done", "set-default-layout", True), ("done", "set-default-striping", True),  # in force
    ("undone", "set-default-striping", False),
    ("", "migrate", True), ("undoing", "migrate", True), ("undoing", "set-default-layout", True),  # for recovery
])
def test_acts_that_can_be_undone_or_recovered_outlive_the_retention(path: Path, outcome: str, kind: str,
                                                               stays: bool) -> None:
    journal = Journal(path)
    number = act(journal, journal.add_finding(FINDING), 10.0, outcome, kind)
    newest(journal, 2 * YEAR)
    prune(journal, 2 * YEAR)
    assert (number in ids(journal)) is stays
    assert (journal.key_of_finding(1) is not None) is stays


def test_acts_of_findings_in_use_and_with_waiting_moves_stay(path: Path) -> None:
    journal = Journal(path)
    open_case, waiting, over = (journal.add_finding(FINDING) for _ in range(3))
    acts = [act(journal, finding, 10.0) for finding in (open_case, waiting, over)]
    move = Action(ActKind.MIGRATE, AFTER, "", FINDING.key, path="/proj/b")
    journal.queue.add([move], waiting, Stamp("fs", False, 1.0))
    newest(journal, 2 * YEAR)
    prune(journal, 2 * YEAR, in_use=(open_case,))
    assert ids(journal) == {acts[0], acts[1], acts[2] + 1}
    assert [journal.was_removed(number, "findings") for number in (open_case, waiting, over)] == [False, False, True]


def test_an_act_counts_from_its_end(path: Path) -> None:
    """A default layout of two years that was undone yesterday is not forgotten: its directory cools down."""
    journal = Journal(path)
    number = act(journal, journal.add_finding(FINDING), 10.0, kind="set-default-layout", place="/proj")
    newest(journal, 2 * YEAR)
    journal.end(number, Outcome.UNDONE, "", 2 * YEAR - DAY)
    prune(journal, 2 * YEAR)
    assert journal.undone_at("/proj") == 2 * YEAR - DAY


def test_zero_keeps_records_until_a_retention_is_set(path: Path) -> None:
    journal = Journal(path)
    act(journal, journal.add_finding(FINDING), 10.0)
    newest(journal, 10 * YEAR)
    prune(journal, 10 * YEAR, keep_seconds=0.0)
    assert ids(journal) == {1, 2}
    reader = JournalReader(path)
    assert (reader.complete_since(), reader.removed_acts()) == (1.0, 0)
    journal.close()
    again = Journal(path)
    prune(again, 10 * YEAR)
    assert ids(again) == {2}
    assert reader.sums_of_all() == {"done": 2}


def test_sums_and_totals_do_not_fall_back(path: Path) -> None:
    journal, reader = Journal(path), JournalReader(path)
    for day in range(0, 700, 7):
        number = journal.add_finding(replace(FINDING, time=day * DAY + 100))
        act(journal, number, day * DAY + 200, size_bytes=day)
        act(journal, number, day * DAY + 300, "failed")
        verdict = Verdict.HELPED if day % 2 else Verdict.HARMED_OTHERS
        journal.judgements.add(number, FINDING.kind, "flash", MIB, verdict, 0.5, day * DAY + 400)
    whole, of_all = reader.sums_of_period(0.0, 800 * DAY), reader.sums_of_all()
    year_before = reader.sums_of_period(14 * DAY, 28 * DAY)
    won_back = journal.judgements.won_back(FINDING.kind, "flash", MIB)
    prune(journal, 700 * DAY)
    assert len(ids(journal)) < 110
    assert reader.removed_acts() == 200 - len(ids(journal))
    assert reader.sums_of_period(0.0, 800 * DAY) == whole
    assert reader.sums_of_period(14 * DAY, 28 * DAY) == year_before
    assert reader.sums_of_all() == of_all == {"done": 100, "failed": 100}
    assert journal.judgements.won_back(FINDING.kind, "flash", MIB) == won_back
    assert reader.complete_since() == 700 * DAY - YEAR


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


def test_a_finding_that_stays_keeps_the_sums_of_its_removed_acts(path: Path) -> None:
    journal, reader = Journal(path), JournalReader(path)
    number = journal.add_finding(FINDING)
    act(journal, number, 10.0, kind="set-default-layout", place="/proj")
    for _ in range(5):
        act(journal, number, 20.0, size_bytes=7)
    newest(journal, 2 * YEAR)
    before = reader.sums_of_finding(number)
    prune(journal, 2 * YEAR)
    assert [entry.kind for entry in reader.acts_of(number, 10)] == ["set-default-layout"]
    assert reader.sums_of_finding(number) == before
    assert before["bytes_moved"] == 35


def test_directories_of_removed_acts_may_still_hold_files_on_flash(path: Path) -> None:
    journal = Journal(path)
    act(journal, journal.add_finding(FINDING), 10.0, place="/proj/sub/a")
    newest(journal, 2 * YEAR)
    prune(journal, 2 * YEAR)
    assert journal.act_directories.all() == {"/proj/sub", "/proj"}
    journal.act_directories.forget("/proj/sub")
    journal.close()
    assert Journal(path).act_directories.all() == {"/proj"}


def test_numbers_are_never_given_twice(path: Path) -> None:
    journal = Journal(path)
    finding = journal.add_finding(FINDING)
    number = act(journal, finding, 10.0)
    prune(journal, 10 * YEAR)
    assert journal.add_finding(FINDING) > finding
    assert act(journal, finding, 10.0) > number


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


def test_three_years_of_acts_fill_no_more_than_what_is_kept(path: Path) -> None:
    """Virtual time: the file is as large after three years as after the first, by which all pages are in use again."""
    journal, reader = Journal(path), JournalReader(path)
    sizes = []
    for day in range(3 * 365 + 1):
        with journal.transaction():
            now = day * DAY
            finding = journal.add_finding(replace(FINDING, time=now))
            journal.add_messages(finding, ["a sentence about it"] * 3, now)
            for number in range(10):
                act(journal, finding, now + number, place=f"/proj/{day % 50}/{day}-{number}")
            undone = act(journal, finding, now, kind="set-default-layout", place=f"/proj/{day % 50}")
            journal.end(undone, Outcome.UNDONE, "", now + 500)
            journal.add_samples({"findings": 1.0, "waiting moves": 2.0}, now)
        for _ in range(10):
            journal.retention.step(now + 1000, YEAR)
        if day % 365 == 0:
            sizes.append(journal.size_bytes())
    assert len(ids(journal)) <= 11 * 367
    assert sizes[1] > 20 * sizes[0]
    assert sizes[3] < 1.15 * sizes[1]
    assert reader.sums_of_all() == {"done": 10 * 1096, "undone": 1096}
    assert reader.sums_of_period(-1.0, 4 * YEAR)["kinds"] == {"noisy-neighbour": 1096}


def test_a_shorter_retention_gives_pages_back_to_the_file_system(path: Path) -> None:
    journal = Journal(path)
    finding = journal.add_finding(FINDING)
    with journal.transaction():
        for number in range(8000):
            act(journal, finding, float(number))
    newest(journal, 2 * YEAR)
    large = journal.size_bytes()
    prune(journal, 2 * YEAR)
    assert journal.size_bytes() < large / 2


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
    reader, left = JournalReader(path), []
    for statements in (3, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 30):
        process.stdin.write(f"{statements}\n")
        assert int(process.stdout.readline()) == signal.SIGKILL
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            left.append(db.execute("SELECT count(*) FROM actions").fetchone()[0])
        sums = reader.sums_of_period(-1.0, 3 * YEAR)
        assert (sums["all_acts"], sums["bytes_moved"]) == (201, 610)
        assert sums["kinds"] == {"noisy-neighbour": 11}
    process.communicate()
    assert left[0] == 201 > left[-1]
    again = Journal(path)
    prune(again, 2 * YEAR)
    assert len(ids(again)) == 1
    assert reader.sums_of_period(-1.0, 3 * YEAR)["all_acts"] == 201


OUTCOMES = ["done", "failed", "refused", "undone", "undoing", "", "dry-run"]
ACTS = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1000), st.sampled_from(OUTCOMES),
                          st.sampled_from(["migrate", "set-default-layout"])), max_size=30)


@settings(max_examples=40)
@given(acts=ACTS, keep_seconds=st.floats(1, 900), in_use=st.sets(st.integers(1, 5)))
def test_removed_acts_are_in_the_sums_and_protected_ones_stay(
        tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[int, float, str, str]], keep_seconds: float,
        in_use: set[int]) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.sqlite"
    journal, reader = Journal(path), JournalReader(path)
    findings = [journal.add_finding(FINDING) for _ in range(5)]
    with journal.transaction():
        for finding, at, outcome, kind in acts:
            act(journal, findings[finding], at, outcome, kind)
    before, entries = reader.sums_of_period(-DAY, 2 * DAY), {entry.id: entry for entry in journal.entries()}
    prune(journal, 1000.0, keep_seconds, tuple(in_use))
    assert reader.sums_of_period(-DAY, 2 * DAY) == before
    for number in entries.keys() - ids(journal):
        gone = entries[number]
        assert gone.intended_at + 1 < 1000.0 - keep_seconds
        assert gone.outcome not in {"", "undoing"}
        assert (gone.kind, gone.outcome) != ("set-default-layout", "done")
    journal.close()


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
