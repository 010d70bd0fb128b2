import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from lustre.fid import Fid
from tests.tierd.act.journal.test_retention import FINDING, MIB, YEAR, act, newest, prune
from tests.tierd.site import Site
from tierd.act.journal.writer import Journal
from tierd.act.staging import StagingStore

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
