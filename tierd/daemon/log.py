"""What the daemon logs: findings, acts and verdicts, each once; and the counters of its metrics.

Sentences about a finding go to the journal too.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock

from lustre.layout.directory import setdirstripe_arguments
from lustre.layout.model import Layout, destination, explain
from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.outcomes import CompletedAct
from tierd.acts import DEFAULT_KINDS, ActKind, Outcome, Verdict
from tierd.clock import Clock
from tierd.model import Action, Finding, FindingKey
from tierd.refusal import Reason, Refusal
from tierd.text import bytes_text, count_of, first_names, percent, quoted, rate_text, regained_text
from tierd.verify.judgement import Judgement

TARGETS_NAMED = PLACES_NAMED = 16
NOT_MOVED = {Outcome.REFUSED, Outcome.FAILED, Outcome.GAVE_WAY, Outcome.DOUBTFUL, Outcome.ALREADY, Outcome.GONE}


def default_layout_sentences(outcomes: Sequence[CompletedAct]) -> Iterator[str]:
    """Default layouts that were set, would be set in a dry run, or were not set. Equal results share one sentence."""
    verb = {Outcome.DONE: "SET", Outcome.DRY_RUN: "WOULD SET", Outcome.REFUSED: "REFUSED to set",
            Outcome.FAILED: "FAILED to set"}
    groups: dict[tuple[Outcome, str, str, str], list[Action]] = {}
    for outcome in outcomes:
        if outcome.action.striping is not None:
            options = " ".join(setdirstripe_arguments(outcome.action.striping))
            what = f"default striping of {quoted(outcome.action.directory)} over MDTs: lfs setdirstripe {options}"
            yield f"{verb[outcome.result]} {what}{f' ({outcome.detail})' if outcome.detail else ''}"
            yield f"      because {outcome.action.reason}"
            continue
        before = explain(outcome.before) if isinstance(outcome.before, Layout) else "no default layout of its own"
        way = outcome.result, explain(outcome.action.layout), before, outcome.detail
        groups.setdefault(way, []).append(outcome.action)
    for (result, layout, before, detail), actions in groups.items():
        places = first_names(action.directory for action in actions)
        of = places if len(actions) == 1 else f"{len(actions)} directories ({places})"
        yield f"{verb[result]} default layout of {of}: {layout}; before: {before}{f' ({detail})' if detail else ''}"
        yield f"      because {actions[0].reason}"


def waiting_sentence(finding: Finding, number: int, actions: Sequence[Action]) -> str:
    """What a plan that waits for an administrator would do, what it may bring, and what it costs."""
    defaults = [a for a in actions if a.kind in DEFAULT_KINDS]
    moves = [a for a in actions if a.kind == ActKind.MIGRATE]
    size = bytes_text(sum(a.size_bytes for a in moves))
    parts = []
    if defaults:
        layout = explain(defaults[0].layout) if defaults[0].striping is None else "directories over several MDTs"
        parts.append(f"set the default of {first_names(a.directory for a in defaults)} ({layout})")
    if moves:
        parts.append(f"move {count_of(len(moves), 'file')}, {size}, to {explain(moves[0].layout)}")
    brings = ""
    if (stream := finding.evidence.of_stream) is not None:
        now = stream.victim_bytes_per_second
        low, high = (now / (1 - loss) - now for loss in (stream.loss_low, stream.loss_high))
        brings = (f"; {finding.victim} may gain {rate_text(stream.victim_usual_bytes_per_second - now)} "
                  f"({rate_text(low)} to {rate_text(high)})")
    cost = f"; the disks read and write {size} for it" if moves else ""
    return (f"waits for approval to {' and '.join(parts)}{brings}{cost}: tierctl apply F{number}, or "
            f"tierctl decline F{number}")


def queued_sentence(moves: Sequence[Action]) -> str:
    files, size = count_of(len(moves), "file"), bytes_text(sum(a.size_bytes for a in moves))
    first = f"next: {quoted(moves[0].path)}, {bytes_text(moves[0].size_bytes)}"
    return f"QUEUED {files} for migration, {size} ({first}), to {explain(moves[0].layout)}: {moves[0].reason}"


def moved_sentences(outcomes: Sequence[CompletedAct], waiting: int) -> Iterator[str]:
    """Moves of one cycle: one line for all that succeeded, and one line for each reason why others did not."""
    went = [o for o in outcomes if o.result in {Outcome.DONE, Outcome.DRY_RUN}]
    if went:
        verb = "MOVED" if went[0].result == Outcome.DONE else "WOULD MOVE"
        names = first_names((o.action.path for o in went), 2)
        pools = sorted({"the MDT" if first.on_mdt else first.pool or "other targets"
                        for first in (destination(o.action.layout) for o in went)})
        yield f"{verb} {names} to {', '.join(pools)}; {waiting} queued"
    left = Counter(why_not_moved(o) for o in outcomes if o.result in NOT_MOVED)
    for detail, count in left.items():
        example = next(o.action.path for o in outcomes if o.result in NOT_MOVED and why_not_moved(o) == detail)
        yield f"not moved: {quoted(example)}{f' and {count - 1} more' if count > 1 else ''}: {detail}"


def why_not_moved(outcome: CompletedAct) -> str:
    return outcome.detail or {Outcome.GONE: "it no longer exists"}.get(outcome.result, "already in the wanted layout")


def throughput_text(finding: Finding, judgement: Judgement) -> str:
    """The victim's throughput without the neighbour, with it and after the act; device time may predict the first."""
    stream = finding.evidence.of_stream
    if stream is None or not stream.lacks_past:
        return (f"{finding.victim}: {rate_text(judgement.usual)} without the neighbour, "
                f"{rate_text(judgement.contended)} with it, {rate_text(judgement.after)} after the act")
    low, high = (stream.victim_bytes_per_second / (1 - loss) for loss in (stream.loss_low, stream.loss_high))
    return (f"{finding.victim}: {rate_text(judgement.contended)} before the act, "
            f"{rate_text(judgement.after)} after; device time predicted {rate_text(judgement.usual)} "
            f"({rate_text(low)} to {rate_text(high)}) without the neighbour")


def judged_sentence(finding: Finding, judgement: Judgement) -> str:
    """The verdict, and the throughput before, during and after: of the victim, or of the job whose files were moved."""
    if judgement.own:
        before, after = ((f"{rate:.0f} operations/s" if judgement.operations else rate_text(rate))
                         for rate in (judgement.contended, judgement.after))
        numbers = f"{quoted(finding.aggressor)}: {before} before, {after} after"
    else:
        numbers = throughput_text(finding, judgement)
    if judgement.regained:
        numbers += f"; {regained_text(*judgement.regained)}"
    match judgement.verdict:
        case Verdict.HELPED:
            verdict = "KEPT: it helped"
        case Verdict.HARMED_OTHERS:
            losses = (f"{quoted(job)} lost {percent(part)}" for job, part in sorted(judgement.harmed.items()))
            verdict = f"UNDOING: other jobs got slower: {', '.join(losses)}"
        case Verdict.CANNOT_TELL if judgement.own:
            verdict = "KEPT: no job slowed down; no measurable gain: the job has ended, or does about as much as before"
        case Verdict.CANNOT_TELL:
            verdict = f"KEPT: the effect cannot be judged: {judgement.doubt}"
        case _:
            verdict = f"UNDOING: {'the job got slower' if judgement.own else 'it did not help'}"
    return f"{verdict}. {numbers}"


@dataclass(slots=True)
class LoopCounters:
    """Counts of cycles, findings, refusals and verdicts."""

    cycles: int = 0
    last_cycle_at: float = 0.0
    cycle_seconds: float = 0.0
    """Duration of the last cycle."""
    records: int = 0
    """Changelog records that were read."""
    found: Counter[str] = field(default_factory=Counter)
    """Number of findings by kind."""
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    refusals: Counter[Reason] = field(default_factory=Counter)
    found_at: dict[str, float] = field(default_factory=dict)
    """When a finding of each kind last began."""
    judged_at: float = 0.0
    """When the last verdict was given."""
    changelog_lag_seconds: float = 0.0
    """Age of the oldest record of the last cycle when it was read."""


logger = logging.getLogger("tierd.daemon")


@dataclass(slots=True)
class KnownFindings:
    """What was logged about findings that hold or were acted on."""

    numbers: dict[FindingKey, int] = field(default_factory=dict)
    """Their numbers in the journal."""
    records: dict[FindingKey, Finding] = field(default_factory=dict)
    """Each with the figures that all output has, and the time when it began."""
    refused: dict[FindingKey, set[tuple[Reason, str]]] = field(default_factory=dict)


class FindingLog:
    """Logs each sentence once, and knows the number of each finding in the journal. Safe in any thread."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self.counters = LoopCounters()
        self.known = KnownFindings()
        self._faults: dict[str, str] = {}
        """Message of each source that fails; "" for a source that has recovered."""
        self._held = ""
        self._lock = RLock()

    @property
    def faults(self) -> Mapping[str, str]:
        # a copy: other threads add sources
        return {source: words for source, words in tuple(self._faults.items()) if words}

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Write what is logged meanwhile to the journal at once: it waits for the disk once, not for each sentence."""
        with self._lock, self._journal.transaction():
            yield

    def take_over(self, known: KnownFindings) -> None:
        """Continue with the findings of the log before, as far as they are in this journal."""
        with self._lock:
            numbers = {key: number for key, number in known.numbers.items()
                       if self._journal.key_of_finding(number) == key}
            self.known = replace(known, numbers=numbers)

    def all(self, sentences: Iterable[str], level: int = logging.INFO) -> None:
        for sentence in sentences:
            logger.log(level, "%s", sentence)

    def begun(self, finding: Finding) -> None:
        """Number, count and log a finding that did not hold before."""
        with self._lock:
            self.counters.found[finding.kind] += 1
            self.counters.found_at[finding.kind] = self._clock.now()
            self.known.records[finding.key] = finding
            self.known.numbers[finding.key] = self._journal.add_finding(finding)
            logger.info("%s", f"FOUND {finding.kind}: {finding.sentence}")  # explain shows the recorded sentence
            where = first_names(finding.directories, PLACES_NAMED) or "directories not known yet"
            on = f"on {first_names(finding.targets, TARGETS_NAMED)}, " if finding.targets else ""
            place = [f"      {on}in {where}"] if finding.directories or finding.victim else []
            advice = (f"      advice: {each.command}, {each.where}: {each.effect}" for each in finding.advice)
            self.of_number(self.known.numbers[finding.key], [*place, *advice], at=finding.time)

    def began_again(self, number: int, finding: Finding) -> None:
        """Continue with a finding that began again before its case was closed: it keeps number and figures."""
        with self._lock:
            self.known.records[finding.key], self.known.numbers[finding.key] = finding, number
            self._journal.finding_ended(number, None)
            what = f"{finding.aggressor} slows {finding.victim} again" if finding.victim else "found again"
            self.of_number(number, [f"again: {what}"])

    def ended(self, finding: Finding, now: float, *, acted_on: bool) -> None:
        """Log the end of a finding. If it returns, everything about it is logged again."""
        with self._lock:
            self.of_number(self.known.numbers.get(finding.key), [
                f"ended: {finding.aggressor} no longer slows {finding.victim}" if finding.victim
                else f"ended: {finding.kind} of {quoted(finding.subject or finding.aggressor)}"])
            if (number := self.known_number(finding)):
                self._journal.finding_ended(number, now)
            if finding.key in self.known.numbers and not acted_on:
                self._journal.set_figures(self.known.numbers.pop(finding.key), self.recorded(finding))
            self.known.records.pop(finding.key, None)
            self.known.refused.pop(finding.key, None)

    def holds(self, finding: Finding) -> bool:
        """Whether a finding has begun and not ended."""
        return finding.key in self.known.records

    def forget(self, key: FindingKey) -> None:
        with self._lock:
            self.known.numbers.pop(key, None)

    def recorded(self, finding: Finding) -> Finding:
        """The finding as all output shows it: with the time when it began, and one set of figures.

        What a stream had is recorded when it is found slow, and again when acts are planned, on which the verdict
        rests. In between, rates on more targets take the place of those on fewer. Other findings have the present
        figures.
        """
        record = self.known.records.get(finding.key)
        if record is None:
            return finding
        if finding.evidence.of_stream is None:
            return replace(finding, time=record.time)
        return replace(finding, time=record.time, sentence=record.sentence, evidence=record.evidence,
                       targets=record.targets)

    def record(self, finding: Finding) -> Finding:
        """Record the present figures of a finding, in the journal too; returns it as :meth:`recorded` does."""
        with self._lock:
            before = self.known.records.get(finding.key)
            self.known.records[finding.key] = replace(finding, time=before.time) if before else finding
            self._journal.set_figures(self.number(finding), self.known.records[finding.key])
            return self.known.records[finding.key]

    def measured(self, number: int, finding: Finding, usual: float, contended: float) -> Finding:
        """Record the victim's rates without and with the aggressor, as the verdict has them; returns that finding.

        When it was found, the aggressor may have been there for a part of the window only.
        """
        stream = finding.evidence.of_stream
        if stream is None or not 0 < contended < usual:
            return finding
        loss = 1 - contended / usual
        made = replace(finding, evidence=replace(
            stream, victim_usual_bytes_per_second=usual, victim_bytes_per_second=contended, slowdown=usual / contended,
            loss_low=min(stream.loss_low, loss), loss_high=max(stream.loss_high, loss)))
        with self._lock:
            if self.known.numbers.get(finding.key) == number and finding.key in self.known.records:
                self.known.records[finding.key] = made
            self._journal.set_figures(number, made)
        return made

    def record_wider(self, finding: Finding) -> None:
        """Record the figures of a finding that rests on more targets than the recorded one."""
        with self._lock:
            before = self.known.records.get(finding.key)
            if before is not None and len(finding.targets) > len(before.targets):
                self.record(finding)

    def known_number(self, finding: Finding) -> int:
        """Number of a finding in the journal; 0 if it has ended meanwhile and was not acted on."""
        return self.known.numbers.get(finding.key, 0)

    def number(self, finding: Finding) -> int:
        """Number of a finding in the journal, which is added if it is not there."""
        with self._lock:
            if finding.key not in self.known.numbers:
                self.known.numbers[finding.key] = self._journal.add_finding(finding)
                self.known.records.setdefault(finding.key, finding)
            return self.known.numbers[finding.key]

    def of_number(self, number: int | None, sentences: Sequence[str], level: int = logging.INFO,
                  at: float | None = None) -> None:
        """Log sentences, and add them to the journal's finding or order of this number, if any, as of ``at`` or now."""
        self.all(sentences, level)
        if number is not None:
            self._journal.add_messages(number, sentences, self._clock.now() if at is None else at)

    def undone(self, number: int, entry: Entry, result: Outcome, detail: str) -> None:
        what = {ActKind.SET_DEFAULT_LAYOUT: "default layout of ",
                ActKind.SET_DEFAULT_STRIPING: "default striping of "}.get(entry.kind, "layout of ")
        level = logging.WARNING if result in {Outcome.FAILED, Outcome.REFUSED} else logging.INFO
        self.of_number(number, [f"{result.upper()} {what}{quoted(entry.place)}: {detail}"], level)

    def fault(self, source: str, words: str) -> None:
        """Log a fault of a source when it begins, changes or ends."""
        with self._lock:
            if words == self._faults.get(source, ""):
                return
            logger.log(logging.WARNING if words else logging.INFO, "%s", words or f"{source}: recovered")
            self._faults[source] = words

    def held(self, held: str) -> None:
        """Log when something begins to hold acts back, and when acts become possible again."""
        with self._lock:
            if bool(held) != bool(self._held):
                logger.info("%s", f"no new acts: {held}" if held else "acts are possible again")
            self._held = held

    def refusals(self, finding: Finding, refusals: Iterable[Refusal]) -> None:
        """Log each refusal once while the finding holds: one reason of one thing is the same, whatever its figures."""
        with self._lock:
            known = self.known.refused.setdefault(finding.key, set())
            for refusal in refusals:
                what = refusal.reason, refusal.what
                if what not in known:
                    known.add(what)
                    self.counters.refusals[refusal.reason] += 1
                    self.of_number(self.known.numbers.get(finding.key), [f"not done: {refusal}"])

    def dropped(self, number: int, why: Refusal, moves: int) -> None:
        """Log and count waiting moves of the finding with this number that were dropped."""
        with self._lock:
            self.counters.refusals[why.reason] += moves
            self.of_number(number, [f"dropped {count_of(moves, 'waiting move')}: {why}"])
