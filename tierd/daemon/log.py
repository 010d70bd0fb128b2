"""What the daemon logs: findings, acts and verdicts, each once; and the counters of its metrics.

Sentences about a finding go to the journal too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock

from lustre.layout.model import explain
from tierd.act.journal.entry import Entry
from tierd.act.journal.writer import Journal
from tierd.act.outcomes import CompletedAct
from tierd.acts import ActKind, Outcome, Verdict
from tierd.clock import Clock
from tierd.config.settings import Settings
from tierd.model import Action, Advice, Finding
from tierd.refusal import Refusal
from tierd.text import bytes_text, count_of, first_names, percent, quoted, without_figures
from tierd.verify.judgement import Judgement

TARGETS_NAMED = PLACES_NAMED = 16
NOT_MOVED = {Outcome.REFUSED, Outcome.FAILED, Outcome.GAVE_WAY, Outcome.DOUBTFUL, Outcome.ALREADY}


def found_sentences(finding: Finding) -> Iterator[str]:
    """A finding that began."""
    yield f"FOUND {finding.kind}: {finding.sentence}"
    where = first_names(finding.directories, PLACES_NAMED) or "directories not known yet"
    on = f"on {first_names(finding.targets, TARGETS_NAMED)}, " if finding.targets else ""
    if finding.directories or finding.victim:
        yield f"      {on}in {where}"
    yield from (f"      advice: {advice_sentence(advice)}" for advice in finding.advice)


def over_sentence(finding: Finding) -> str:
    """A finding that no longer holds."""
    if finding.victim:
        return f"over: {finding.aggressor} no longer slows {finding.victim}"
    return f"over: {finding.kind} of {quoted(finding.subject or finding.aggressor)}"


def advice_sentence(advice: Advice) -> str:
    """What a person may do, where, and what to expect of it."""
    return f"{advice.command}, {advice.where}: {advice.effect}"


def planned_sentence(defaults: Sequence[Action], moves: Sequence[Action]) -> str:
    """What is going to be done for a finding, in one sentence."""
    places = first_names(action.directory for action in defaults)
    layouts = {explain(action.layout) for action in defaults}
    layout = layouts.pop() if len(layouts) == 1 else "a flash component that holds their files"
    then = (f"; then move {count_of(len(moves), 'existing file')}, {bytes_text(sum(a.size_bytes for a in moves))}"
            if moves else "")
    return (f"PLAN: set the default layout of {count_of(len(defaults), 'directory', 'directories')}, most active first "
            f"({places}), to {layout}{then}")


def default_layout_sentences(outcomes: Sequence[CompletedAct]) -> Iterator[str]:
    """Default layouts that were set, would have been, or were not; those that went the same way in one sentence."""
    verb = {Outcome.DONE: "SET", Outcome.DRY_RUN: "WOULD SET", Outcome.REFUSED: "REFUSED to set",
            Outcome.FAILED: "FAILED to set"}
    groups: dict[tuple[Outcome, str, str, str], list[Action]] = {}
    for outcome in outcomes:
        before = "none of its own" if outcome.before is None else explain(outcome.before)
        way = outcome.result, explain(outcome.action.layout), before, outcome.detail
        groups.setdefault(way, []).append(outcome.action)
    for (result, layout, before, detail), actions in groups.items():
        places = first_names(action.directory for action in actions)
        of = places if len(actions) == 1 else f"{len(actions)} directories ({places})"
        yield f"{verb[result]} default layout of {of}: {layout}; before: {before}{f' ({detail})' if detail else ''}"
        yield f"      because {actions[0].reason}"


def departed_sentence(finding: Finding, dropped: int) -> str:
    """Moves that were dropped since nobody reads their files any more."""
    return (f"dropped {count_of(dropped, 'waiting move')}: {finding.aggressor} has stopped, so moving its files "
            "would only load the disks")


def recommended_sentences(actions: Sequence[Action], settings: Settings) -> Iterator[tuple[str, str, list[str]]]:
    """What a mode keeps from being done, by directory: the directory, the mode there, and the sentences."""
    for action in actions:
        if action.kind == ActKind.SET_DEFAULT_LAYOUT:
            mode = settings.resolved_scopes.of(action.directory).mode
            what = f"default layout of {quoted(action.directory)}: {explain(action.layout)}"
            yield action.directory, mode, [f"RECOMMENDED (mode {mode}): {what}", f"      because {action.reason}"]
    moves = [a for a in actions if a.kind == ActKind.MIGRATE]
    for directory in dict.fromkeys(a.directory for a in moves):
        mine = [a for a in moves if a.directory == directory]
        mode = settings.resolved_scopes.of(directory).mode
        files, size = count_of(len(mine), "existing file"), bytes_text(sum(a.size_bytes for a in mine))
        what = f"move {files} of {quoted(directory)}, {size}"
        sentence = f"RECOMMENDED (mode {mode}): {what}, to {explain(mine[0].layout)}: {mine[0].reason}"
        yield f"moves in {directory}", mode, [sentence]


def queued_sentence(moves: Sequence[Action]) -> str:
    """Moves that were queued."""
    files, size = count_of(len(moves), "file"), bytes_text(sum(a.size_bytes for a in moves))
    first = f"next: {quoted(moves[0].path)}, {bytes_text(moves[0].size_bytes)}"
    return f"QUEUED {files} for migration, {size} ({first}), to {explain(moves[0].layout)}: {moves[0].reason}"


def moved_sentences(outcomes: Sequence[CompletedAct], waiting: int) -> Iterator[str]:
    """Moves of one cycle: those that went in one line, each of the others with its reason."""
    went = [o for o in outcomes if o.result in {Outcome.DONE, Outcome.DRY_RUN}]
    if went:
        verb = "MOVED" if went[0].result == Outcome.DONE else "WOULD MOVE"
        names = ", ".join(quoted(o.action.path) for o in went[:2])
        more = f" and {len(went) - 2} more" if len(went) > 2 else ""
        pools = sorted({o.action.layout.components[0].pool for o in went})
        yield f"{verb} {names}{more} to {', '.join(pools)}; {waiting} queued"
    gone = sum(o.result == Outcome.GONE for o in outcomes)
    if gone:
        why = "it no longer exists" if gone == 1 else "they no longer exist"
        yield f"skipped {count_of(gone, 'queued file')}: {why}"
    already = sum(o.result == Outcome.ALREADY and not o.detail for o in outcomes)
    if already:
        yield f"skipped {count_of(already, 'queued file')}: already in the wanted layout"
    left = Counter(o.detail for o in outcomes if o.result in NOT_MOVED and o.detail)
    for detail, count in left.items():
        example = next(o.action.path for o in outcomes if o.detail == detail)
        yield f"not moved: {quoted(example)}{f' and {count - 1} more' if count > 1 else ''}: {detail}"


def remeasured_sentence(finding: Finding, judgement: Judgement) -> str:
    """That the moves of a case wait, since nothing was won while they went on."""
    return (f"no gain for {finding.victim} while files are moved ({judgement.after / 1e6:.1f} MB/s, "
            f"{judgement.contended / 1e6:.1f} before the act): the moves that are left wait while it is measured again")


def judged_sentence(finding: Finding, judgement: Judgement) -> str:
    """The victim's throughput before, during and after, and what follows from it."""
    numbers = (f"{finding.victim}: {judgement.usual / 1e6:.1f} MB/s before the noise, "
               f"{judgement.contended / 1e6:.1f} during, {judgement.after / 1e6:.1f} after")
    if judgement.verdict == Verdict.HELPED:
        return f"KEPT: it helped. {numbers} ({percent(judgement.won_back)} of the loss won back)"
    if judgement.verdict == Verdict.CANNOT_TELL:
        return f"KEPT: it cannot be judged: a job has ended, or the measurement is in doubt. {numbers}"
    if judgement.verdict == Verdict.HARMED_OTHERS:
        who = ", ".join(f"{quoted(job)} lost {percent(part)}" for job, part in sorted(judgement.harmed.items()))
        return f"UNDOING: other jobs got slower: {who}. {numbers}"
    return f"UNDOING: it did not help. {numbers}"


def undone_sentence(entry: Entry, result: Outcome, detail: str) -> str:
    """An act taken back, or why not."""
    what = "default layout of " if entry.kind == ActKind.SET_DEFAULT_LAYOUT else "layout of "
    return f"{result.upper()} {what}{quoted(entry.place)}: {detail}"


@dataclass(slots=True)
class LoopCounters:
    """Counts of cycles, findings, refusals and verdicts."""

    cycles: int = 0
    last_cycle_at: float = 0.0
    cycle_seconds: float = 0.0
    """Of the last cycle."""
    records: int = 0
    """Changelog records taken in."""
    found: Counter[str] = field(default_factory=Counter)
    """By kind of finding."""
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """By the short name of the reason."""
    found_at: dict[str, float] = field(default_factory=dict)
    """When a finding of each kind last began."""
    gained: dict[str, float] = field(default_factory=dict)
    """Victim to the part of its loss that was won back, by the last judgement."""
    gains: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Victim to what it had lost, and what of it was won back, in bytes per second."""
    changelog_lag_seconds: float = 0.0
    """Age of the oldest record of the last cycle, when it was taken in."""


LogFunction = Callable[[str], None]
FindingKey = tuple[str, str, str]


class FindingLog:
    """Logs each sentence once, and knows the number of each finding in the journal. For any thread."""

    def __init__(
        self, say: LogFunction, journal: Journal, clock: Clock, settings: Settings, tally: LoopCounters
    ) -> None:
        self.say = say
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._tally = tally
        self._numbers: dict[FindingKey, int] = {}
        """Of findings that hold or were acted on, in the journal."""
        self._refused: set[tuple[FindingKey, str]] = set()
        self._recommended: set[tuple[FindingKey, str]] = set()
        self._faults: dict[str, str] = {}
        """What cannot be seen at present, in words; "" for a source that is well again."""
        self._held = ""
        self._lock = RLock()

    @property
    def faults(self) -> Mapping[str, str]:
        """What cannot be seen at present, by source."""
        return {source: words for source, words in tuple(self._faults.items()) if words}

    def all(self, sentences: Iterable[str]) -> None:
        """One after the other."""
        for sentence in sentences:
            self.say(sentence)

    def begun(self, finding: Finding) -> None:
        """A finding that did not hold before."""
        with self._lock:
            self._tally.found[finding.kind] += 1
            self._tally.found_at[finding.kind] = self._clock.now()
            self._numbers[finding.key] = self._journal.add_finding(finding)
            self.of(finding.key, found_sentences(finding))

    def ended(self, finding: Finding, *, acted_on: bool) -> None:
        """A finding that holds no more; when it comes back, all is said again."""
        with self._lock:
            self.of(finding.key, [over_sentence(finding)])
            if not acted_on:
                self._numbers.pop(finding.key, None)
            self._recommended = {told for told in self._recommended if told[0] != finding.key}
            self._refused = {(key, words) for key, words in self._refused if key != finding.key}

    def forget(self, key: FindingKey) -> None:
        """A case that is remembered no longer."""
        with self._lock:
            self._numbers.pop(key, None)

    def number(self, finding: Finding) -> int:
        """Its number in the journal."""
        with self._lock:
            if finding.key not in self._numbers:
                self._numbers[finding.key] = self._journal.add_finding(finding)
            return self._numbers[finding.key]

    def of(self, key: FindingKey, sentences: Iterable[str]) -> None:
        """Say it, and keep it with the finding."""
        told = list(sentences)
        self.all(told)
        if key in self._numbers:
            self._journal.add_messages(self._numbers[key], told, self._clock.now())

    def of_number(self, number: int, sentences: Sequence[str]) -> None:
        """Say it, and keep it with the finding a case, or an order, has in the journal."""
        self.all(sentences)
        self._journal.add_messages(number, sentences, self._clock.now())

    def fault(self, source: str, words: str) -> None:
        """Say it when it begins or changes, and when it is over."""
        with self._lock:
            if words == self._faults.get(source, ""):
                return
            self.say(words or f"{source}: recovered")
            self._faults[source] = words

    def held(self, held: str) -> None:
        """Say it when something keeps acts from being done, and when nothing does any more."""
        with self._lock:
            if bool(held) != bool(self._held):
                self.say(f"no new acts: {held}" if held else "acts are possible again")
            self._held = held

    def refusals(self, finding: Finding, refusals: Iterable[Refusal]) -> None:
        """Tell each once while the finding holds; that a figure in it has changed makes it no other refusal."""
        with self._lock:
            for refusal in refusals:
                what = finding.key, without_figures(refusal.sentence)
                if what not in self._refused:
                    self._refused.add(what)
                    self._tally.refusals[refusal.reason] += 1
                    self.of(finding.key, [f"not done: {refusal}"])

    def recommended(self, finding: Finding, actions: Sequence[Action]) -> None:
        """Tell once what is not done because of the mode there."""
        with self._lock:
            for place, mode, sentences in recommended_sentences(actions, self._settings):
                if mode != "observe" and (finding.key, place) not in self._recommended:
                    self._recommended.add((finding.key, place))
                    self.of(finding.key, sentences)
