"""What the loop says, and to whom: each thing once, and what is said of a finding to the journal too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock

from tierd import narrate
from tierd.act.journal import Journal
from tierd.clock import Clock
from tierd.config import Settings
from tierd.cycle.tally import Tally
from tierd.model import Action, Finding
from tierd.reasons import Refusal
from tierd.text import without_figures

Say = Callable[[str], None]
Key = tuple[str, str, str]


class Telling:
    """Remembers what was said already, and under which number a finding stands in the journal. For any thread."""

    def __init__(self, say: Say, journal: Journal, clock: Clock, settings: Settings, tally: Tally) -> None:
        self.say = say
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._tally = tally
        self._numbers: dict[Key, int] = {}
        """Of findings that hold or were acted on, in the journal."""
        self._refused: set[tuple[Key, str]] = set()
        self._recommended: set[tuple[Key, str]] = set()
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
            self.of(finding.key, narrate.found(finding))

    def ended(self, finding: Finding, *, acted_on: bool) -> None:
        """A finding that holds no more; when it comes back, all is said again."""
        with self._lock:
            self.of(finding.key, [narrate.over(finding)])
            if not acted_on:
                self._numbers.pop(finding.key, None)
            self._recommended = {told for told in self._recommended if told[0] != finding.key}
            self._refused = {(key, words) for key, words in self._refused if key != finding.key}

    def forget(self, key: Key) -> None:
        """A case that is remembered no longer."""
        with self._lock:
            self._numbers.pop(key, None)

    def number(self, finding: Finding) -> int:
        """Its number in the journal."""
        with self._lock:
            if finding.key not in self._numbers:
                self._numbers[finding.key] = self._journal.add_finding(finding)
            return self._numbers[finding.key]

    def of(self, key: Key, sentences: Iterable[str]) -> None:
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
            self.say(words or f"{source}: well again")
            self._faults[source] = words

    def held(self, held: str) -> None:
        """Say it when something keeps acts from being done, and when nothing does any more."""
        with self._lock:
            if bool(held) != bool(self._held):
                self.say(f"nothing new is done: {held}" if held else "changes are made again")
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
            for place, mode, sentences in narrate.recommended(actions, self._settings):
                if mode != "observe" and (finding.key, place) not in self._recommended:
                    self._recommended.add((finding.key, place))
                    self.of(finding.key, sentences)
