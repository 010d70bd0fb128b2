"""The daemon's side of the journal: an intent before each act, its outcome after it.

The journal stores the earlier layout together with the layout that was set: an undo needs nothing but the journal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from lustre.fid import Fid
from lustre.layout.model import Layout, same_shape
from tierd.act.journal.changes import JournalChanges
from tierd.act.journal.connection import Row, SharedConnection, end_triggers, open_journal, pragma
from tierd.act.journal.entry import (
    ENTRY_COLUMNS,
    FINDING_COLUMNS,
    JUDGEMENT_COLUMNS,
    Default,
    Entry,
    QueueStore,
    Stamp,
    entry_of,
    finding_of,
    from_subject,
    judgement_of,
    to_bytes,
    to_layout,
    to_path,
    to_subject,
    to_text,
    wanted_default,
    wanted_to_text,
)
from tierd.act.journal.rates import RateRecords
from tierd.act.journal.reader import JournalReader
from tierd.act.journal.retention import ActDirectories, ClockGuard, Retention
from tierd.acts import ActKind, Outcome, Verdict
from tierd.model import Action, Finding
from tierd.structs import json_text
from tierd.text import printable
from tierd.verify.judgement import Judgement

MAX_DETAIL = 2000
"""Characters of the sentence about how an act ended."""


class Journal:
    """One file, written by the threads of one process.

    A kill at any instruction leaves the file whole: SQLite's write-ahead log. An intent is on the disk before the act
    begins. A power cut may lose an outcome; the next start finds it again by reading the file (:mod:`tierd.act.undo`).
    """

    def __init__(self, path: Path, *, copied: bool = False) -> None:
        """``copied`` records changes for followers. Raises JournalError unless it is a journal of this format."""
        self.db, self.new = open_journal(path)
        self.transaction = self.db.transaction
        """What a thread enters in the block reaches the disk at once, or not at all. Other threads wait."""
        self.changes = JournalChanges(self.db) if copied else None
        if not copied:
            end_triggers(self.db)  # nobody would take the changes, and they would grow for ever
            self.db.execute("DROP TABLE IF EXISTS changed_rows")
        self.reader = JournalReader(path)
        """Queries that may take seconds: no act waits for them."""
        self.publish: Callable[[], None] = lambda: None
        """Returns when followers can get all changes. Called after intents, before the acts. Raises OSError."""
        self.queue = QueueStore(self.db)
        """Moves that wait."""
        self.judgements = Judgements(self.db)
        """Verdicts on acts."""
        self.rates = RateRecords(self.db)
        self.act_directories = ActDirectories(self.db)
        """Where files on flash may lie."""
        self.retention = Retention(self.db, self.rates)
        """Removes old records."""
        self._clock_guard = ClockGuard(self.db)

    def close(self) -> None:
        self.db.close()

    def remove_old(self, now: float, keep_seconds: float, in_use: Collection[int] = ()) -> None:
        """Remove one portion of the old records, unless the clock has jumped lately. Call it in every cycle. See
        :meth:`tierd.act.journal.retention.Retention.step` for the arguments.
        """
        if self._clock_guard.trusted(now):
            self.retention.step(now, keep_seconds, in_use)

    def add_finding(self, finding: Finding) -> int:
        """Enter a finding; acts refer to it by the returned number."""
        return self.db.execute(
            "INSERT INTO findings (time, kind, aggressor, victim, sentence, evidence, targets, directories, subject) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (finding.time, finding.kind, finding.aggressor, finding.victim, printable(finding.sentence),
             json_text(finding.evidence.numbers()), json.dumps(finding.targets), json.dumps(finding.directories),
             to_subject(finding.subject))).lastrowid

    def set_figures(self, number: int, finding: Finding) -> None:
        """Enter the figures, directories and targets of a finding, which may be known later than the finding."""
        self.db.execute("UPDATE findings SET sentence = ?, evidence = ?, directories = ?, targets = ? WHERE id = ?",
                         (printable(finding.sentence), json_text(finding.evidence.numbers()),
                          json.dumps(finding.directories), json.dumps(finding.targets), number))

    def add_messages(self, finding: int, sentences: Iterable[str], now: float) -> None:
        self.db.executemany("INSERT INTO told VALUES (?, ?, ?)", [(finding, now, printable(s)) for s in sentences])

    def intend(self, action: Action, finding: int, before: Default, now: float, dry_run: bool,
               fid: Fid | None = None) -> int:
        """Enter an act that is about to begin, with the layout before it; the returned number is the act's."""
        texts = to_text(before), wanted_to_text(wanted_default(action))
        return self.db.execute(
            "INSERT INTO actions (finding, kind, place, layout_before, layout_after, size_bytes, reason, dry_run, "
            "intended_at, fid, undoes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (finding, action.kind, to_bytes(action.path or action.directory), *texts,
             action.size_bytes, printable(action.reason), dry_run, now, None if fid is None else str(fid),
             action.undoes)).lastrowid

    def end(self, entry: int, outcome: Outcome, detail: str, now: float) -> None:
        """Enter the outcome of an act. ``detail`` may be of any bytes and length: the output of ``lfs`` with names."""
        # SQLite nests no transactions; and only with the lock is it known whose transaction is open
        with self.db.lock, nullcontext() if self.db.raw.in_transaction else self.db.transaction(durable=False):
            self._change(entry, "outcome", outcome, detail, now)
            if outcome == Outcome.DONE:
                self.act_directories.note(entry)

    def queue_again(self, entry: Entry, fs: str) -> None:
        """Let an interrupted move wait again, once for a finding or order: the move itself may be what ends tierd."""
        finding = self.finding_of(entry.id)
        key, layout, fid = self.key_of_finding(finding), entry.layout_after, entry.fid
        if entry.kind == ActKind.MIGRATE and key and layout and fid and entry.undoes is None and not self._has_move(
                fid, "finding = ? AND outcome = 'interrupted'", finding):
            self.queue.add([Action(entry.kind, layout, entry.reason, key, path=entry.place, fid=fid,
                                   size_bytes=entry.size_bytes)], finding, Stamp(fs, entry.dry_run, entry.intended_at))

    def judged(self, entry: int, verdict: Verdict, detail: str, now: float) -> None:
        """Enter the verdict on one act that is in force, and what it rests on."""
        self._change(entry, "verdict", verdict, detail, now)

    def set_before(self, entry: int, before: Default) -> None:
        """Enter what the undo of an act restores: the state before an earlier act, which it has replaced."""
        self.db.execute("UPDATE actions SET layout_before = ? WHERE id = ?", (to_text(before), entry))

    def hand_over(self, entry: int, finding: int) -> None:
        """Enter that an act is now for another finding."""
        self.db.execute("UPDATE actions SET finding = ? WHERE id = ?", (finding, entry))

    def begin_undo(self, entry: int, now: float) -> None:
        self._change(entry, "outcome", Outcome.UNDOING, "", now)

    def _change(self, entry: int, column: Literal["outcome", "verdict"], value: str, detail: str, now: float) -> None:
        self.db.execute(f"UPDATE actions SET {column} = ?, detail = ?, ended_at = ? WHERE id = ?",  # noqa: S608
                        (value, printable(detail[:MAX_DETAIL]), now, entry))

    def positions(self) -> dict[str, int]:
        """MDT to the last changelog record that was dealt with."""
        return dict(self.db.execute("SELECT mdt, record FROM positions"))

    def set_positions(self, positions: Mapping[str, int]) -> None:
        self.db.executemany("INSERT INTO positions VALUES (?, ?) ON CONFLICT (mdt) DO UPDATE "
                             "SET record = excluded.record WHERE record <> excluded.record", positions.items())

    def state(self) -> dict[str, str]:
        """State that survives a restart, such as a pause."""
        return dict(self.db.execute("SELECT name, value FROM state"))

    def set_state(self, values: Mapping[str, str]) -> None:
        """Store the values that have changed."""
        # what is unchanged costs neither a write to the disk nor a row for followers
        known: dict[str, str] = dict(row for name in values for row in self.db.execute(
            "SELECT name, value FROM state WHERE name = ?", (name,)))
        self.db.executemany("INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                             [item for item in values.items() if known.get(item[0], "") != item[1]])

    def files_tried(self, finding: int) -> frozenset[str]:
        rows = self.db.execute("SELECT place FROM actions WHERE finding = ? AND kind = 'migrate'", (finding,))
        return frozenset(to_path(place) for (place,) in rows)

    def moves_of(self, finding: int) -> Counter[Outcome]:
        """Number of moves because of a finding that have ended, by outcome."""
        rows = self.db.execute("SELECT outcome, count(*) FROM actions WHERE finding = ? AND kind = 'migrate' AND "
                                "undoes IS NULL AND outcome != 'under way' GROUP BY 1", (finding,))
        return Counter({Outcome(outcome): count for outcome, count in rows})

    def ended_at(self, finding: int) -> float | None:
        """When a finding ended; None if it held when it was seen last."""
        (time,) = self.db.execute("SELECT ended_at FROM findings WHERE id = ?", (finding,)).only()
        return None if time is None else float(time)

    def finding_ended(self, finding: int, now: float | None) -> None:
        """Enter when a finding ended; None if it holds again."""
        self.db.execute("UPDATE findings SET ended_at = ? WHERE id = ?", (now, finding))

    def was_moved(self, fid: Fid, since: float) -> bool:
        """Whether tierd was moving a file, or moving it back, at some time since then."""
        # without an end it is under way; the expression is that of the index actions_by_end
        return self._has_move(fid, "NOT dry_run AND ifnull(ended_at, 1e18) >= ?", since)

    def is_counted_as_moved(self, fid: Fid, since: float) -> bool:
        """Whether an act that moved a file has ended since a time, and was not undone."""
        return self._has_move(fid, "ended_at >= ? AND outcome = 'done'", since)

    def made_mirrors(self, fid: Fid, layout: Layout) -> bool:
        """Whether tierd gave a file these mirrors, by its last act about the file that is in force."""
        row = self.db.execute("SELECT layout_after FROM actions WHERE fid = ? AND kind = 'migrate' AND "
                              "outcome IN ('done', 'undoing') ORDER BY id DESC LIMIT 1", (str(fid),)).fetchone()
        made = to_layout(row[0]) if row is not None else None
        return made is not None and made.mirror_count > 1 and same_shape(made, layout)

    def was_tried(self, fid: Fid, moved_since: float, tried_since: float) -> bool:
        """Whether tierd has moved a file since a time, or tried to since another."""
        return self._has_move(fid, "(intended_at >= ? OR outcome = 'done' AND ended_at >= ?)", tried_since, moved_since)

    def _has_move(self, fid: Fid, which: str, *times: float) -> bool:
        return any(self.db.execute(f"SELECT 1 FROM actions WHERE fid = ? AND kind = 'migrate' AND {which} LIMIT 1",  # noqa: S608
                                   (str(fid), *times)))

    def stripings_to_judge(self, since: float) -> list[tuple[Entry, str, Mapping[str, float]]]:
        """Default stripings in force without a verdict, set since a time, with kind and numbers of their finding."""
        rows = self.db.execute(
            "SELECT (SELECT kind FROM findings WHERE id = finding), (SELECT evidence FROM findings WHERE "  # noqa: S608
            f"id = finding), {ENTRY_COLUMNS} FROM actions WHERE kind = 'set-default-striping' AND outcome = 'done' AND "
            "NOT dry_run AND verdict = '' AND intended_at >= ? ORDER BY intended_at", (since,))
        return [(entry_of(tuple(row)), kind, json.loads(numbers)) for kind, numbers, *row in rows]

    def moved_since(self, since: float) -> tuple[int, int]:
        """Number and bytes of files that tierd was moving since then; a file that was moved back counts twice."""
        files, size_bytes = self.db.execute(
            "SELECT ifnull(sum(times), 0), ifnull(sum(times * size_bytes), 0) FROM (SELECT size_bytes, "
            "CASE WHEN outcome IN ('undone', 'undoing') THEN 2 ELSE 1 END AS times FROM actions "
            "WHERE kind = 'migrate' AND NOT dry_run AND outcome NOT IN ('refused', 'already', 'gone') AND "
            "ifnull(ended_at, 1e18) >= ?)", (since,)).only()
        return files, size_bytes

    def undone_at(self, place: str, *, move: bool = False) -> float:
        """When a default layout of a directory, or a move of a file, was last undone, or being undone; 0 if never."""
        # two queries, since each outcome has a partial index of its own
        return float(self.db.execute(
            "SELECT ifnull(max(ended_at), 0) FROM (SELECT * FROM actions WHERE place = ?1 AND outcome = 'undone' UNION "
            "ALL SELECT * FROM actions WHERE outcome = 'undoing' AND place = ?1) WHERE (kind = 'migrate') = ?2",
            (to_bytes(place), move)).only()[0])

    def add_samples(self, values: Mapping[str, float], now: float) -> None:
        self.db.executemany("INSERT INTO samples VALUES (?, ?, ?)", [(now, *item) for item in values.items()])

    def size_bytes(self) -> int:
        """Size of the file, without the log that is not yet written into it."""
        return pragma(self.db, "page_count") * pragma(self.db, "page_size")

    def entry(self, number: int) -> Entry | None:
        return next(iter(_acts(self.db, "WHERE id = ?", number)), None)

    def later_in_force(self, entry: Entry) -> list[Entry]:
        """Later acts in force of the same kind on the same directory, in order; none if its FID is unknown."""
        # the pluses keep SQLite to the index of the FID
        return _acts(self.db, "WHERE fid = ? AND id > ? AND +kind = ? AND +outcome = 'done'", str(entry.fid), entry.id,
                     entry.kind)

    def acts_in_force(self, finding: int) -> list[Entry]:
        return _acts(self.db, "WHERE finding = ? AND outcome = 'done'", finding)

    def acts_to_undo(self, finding: int) -> list[Entry]:
        """Acts in force or being undone for a finding, without those that an earlier verdict kept."""
        return _acts(self.db, "WHERE finding = ? AND outcome IN ('done', 'undoing') AND verdict = '' AND "
                     "undoes IS NULL", finding)

    def key_of_finding(self, number: int) -> tuple[str, str, str] | None:
        """What the finding of that number is about (:attr:`tierd.model.Finding.key`); None if there is none."""
        row = self.db.execute("SELECT kind, aggressor, ifnull(nullif(victim, ''), subject) FROM findings WHERE id = ?",
                               (number,)).fetchone()
        return row and (row[0], row[1], from_subject(row[2]))

    def was_removed(self, number: int, table: Literal["actions", "findings"]) -> bool:
        """Whether an act or a finding was removed because of its age. The one with the highest number never is."""
        return bool(self.db.execute(
            f"SELECT ?1 BETWEEN 1 AND (SELECT ifnull(max(id), 0) FROM {table}) AND "  # noqa: S608 -- one of these two
            f"NOT EXISTS (SELECT 1 FROM {table} WHERE id = ?1)", (number,)).only()[0])

    def finding_of(self, act: int) -> int:
        return int(self.db.execute("SELECT finding FROM actions WHERE id = ?", (act,)).only()[0])

    def kinds_of_acts(self) -> dict[int, str]:
        """Kind of the finding that each act was done for, by the number of the act."""
        return dict(self.db.execute("SELECT actions.id, findings.kind FROM actions JOIN findings "
                                     "ON findings.id = actions.finding"))

    def unfinished(self) -> list[Entry]:
        """Acts that were under way, then acts that were being undone, when tierd ended."""
        return _acts(self.db, "WHERE outcome = 'under way'") + self.undoing()

    def undoing(self) -> list[Entry]:
        return _acts(self.db, "WHERE outcome = 'undoing'")

    def entries(self, outcome: Outcome | None = None) -> list[Entry]:
        """Acts in order, with one outcome if it is given."""
        return _acts(self.db, "WHERE outcome LIKE ?", outcome or "%")


def _acts(db: SharedConnection, where: str, *values: int | str) -> list[Entry]:
    # all at once, so that the caller may write the journal in its loop
    return [entry_of(row) for row in db.execute(
        f"SELECT {ENTRY_COLUMNS} FROM actions {where} ORDER BY id", values)]  # noqa: S608


class Judgements:
    """Verdicts on what was done for a finding, and the findings that still need one."""

    def __init__(self, db: SharedConnection) -> None:
        self._db = db

    def add(self, finding: int, kind: str, pool: str, size_bytes: int, verdict: Verdict, won_back: float,
            now: float, usual: float = 0.0, contended: float = 0.0, after: float = 0.0,
            interval: tuple[float, float] | None = None) -> None:
        """Enter the verdict on the acts of a finding; later decisions use it.

        ``usual``, ``contended`` and ``after`` are the victim's throughput before, during and after, in bytes per
        second, and ``interval`` holds ``won_back`` with a probability of 90%: for people.

        If it is against the later acts, acts that an earlier verdict kept store that earlier one as their own.
        """
        if verdict in {Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS}:
            self._db.execute("UPDATE actions SET verdict = (SELECT verdict FROM judgements WHERE finding = ?1) WHERE "
                             "finding = ?1 AND outcome = 'done' AND verdict = '' AND kind != 'set-default-striping' "
                             "AND intended_at <= (SELECT time FROM judgements WHERE finding = ?1 AND verdict IN "
                             "('helped', 'cannot-tell'))", (finding,))
        self._db.execute("INSERT OR REPLACE INTO judgements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         (finding, now, kind, pool, size_bytes, verdict, won_back, usual, contended, after,
                          *(interval or (None, None))))

    def undone_by_hand(self, finding: int) -> None:
        """An administrator has undone the acts of a finding, so that their verdict no longer holds."""
        self._db.execute("UPDATE judgements SET verdict = ? WHERE finding = ?", (Verdict.UNDONE_BY_HAND, finding))

    def won_back(self, kind: str, pool: str, size_bytes: int, last: int = 20) -> list[float]:
        """Share of the victim's loss that the last such acts won back, the newest first."""
        rows = self._db.execute("SELECT won_back FROM judgements WHERE kind = ? AND pool = ? AND size_bytes = ? AND "
                                "verdict IN ('helped', 'did-not-help') ORDER BY time DESC LIMIT ?",
                                (kind, pool, size_bytes, last))
        return [row[0] for row in rows]

    def won_back_by_pool(self, kind: str, last: int = 20) -> dict[str, list[float]]:
        """What the last acts against a kind of finding won back, by pool ("": the MDT), of any size, newest first."""
        rows = self._db.execute("SELECT pool, won_back FROM judgements WHERE kind = ? AND "
                                "verdict IN ('helped', 'did-not-help') ORDER BY time DESC", (kind,))
        found: dict[str, list[float]] = {}
        for pool, won_back in rows:
            if len(known := found.setdefault(pool, [])) < last:
                known.append(won_back)
        return found

    def acted_on(self, since: float) -> Iterator[tuple[int, Finding, list[Entry], Verdict]]:
        """Findings whose default layouts were set since then and are in force, with these acts. First those without a
        verdict, then those with the verdict ``helped`` and waiting moves.
        """
        rows = self._db.execute(
            "SELECT id, (SELECT verdict FROM judgements WHERE finding = findings.id) AS judged FROM findings WHERE "
            "id IN (SELECT finding FROM actions WHERE kind = 'set-default-layout' AND outcome = 'done' AND "
            "intended_at >= ?) AND (judged IS NULL OR judged = 'helped' AND EXISTS (SELECT 1 FROM waiting_moves WHERE "
            "finding = findings.id)) ORDER BY judged, id", (since,))
        for number, verdict in rows:
            yield number, self._finding(number), _acts(
                self._db, "WHERE finding = ? AND kind = 'set-default-layout' AND outcome = 'done'", number
            ), Verdict(verdict or "")

    def of(self, finding: int) -> Judgement | None:
        """The verdict on the acts for a finding."""
        row = self._db.execute(f"SELECT {JUDGEMENT_COLUMNS} FROM judgements WHERE finding = ?",  # noqa: S608
                                (finding,)).fetchone()
        return judgement_of(row) if row else None

    def to_undo(self, since: float) -> Iterator[tuple[int, Finding, Verdict]]:
        """Findings with a verdict against their acts since then, of which acts are in force or being undone."""
        rows = self._db.execute(
            "SELECT finding, verdict FROM judgements WHERE time >= ? AND verdict IN ('did-not-help', "
            "'harmed-others') AND EXISTS (SELECT 1 FROM actions WHERE finding = judgements.finding AND "
            "outcome IN ('done', 'undoing') AND undoes IS NULL) ORDER BY finding", (since,))
        for number, verdict in rows:
            yield number, self._finding(number), Verdict(verdict)

    def _finding(self, number: int) -> Finding:
        row = self._db.execute(f"SELECT {FINDING_COLUMNS} FROM findings WHERE id = ?", (number,)).only()  # noqa: S608
        return finding_of(row, typed=True)[1]

    def version_of_default_layouts(self) -> Row:
        """A value that changes whenever other default layouts are in force."""
        return self._db.execute("SELECT count(*), total(id) FROM actions WHERE kind = 'set-default-layout' AND "
                                "outcome = 'done'").only()

    def default_layouts_in_force(self) -> list[Entry]:
        """The newest first."""
        return _acts(self._db, "WHERE kind = 'set-default-layout' AND outcome = 'done'")[::-1]
