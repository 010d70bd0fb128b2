"""The one gate: nothing else changes a file system. A dry run walks it too, and spends the same budget.

Before each act the gate looks again at what it is about to change: if somebody else moved it since the plan was made,
the act is refused, not forced.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lustre.filesystem import Filesystem
from lustre.layout import Layout, same_shape
from tierd.act.budget import Budget
from tierd.act.journal import Entry, Journal
from tierd.clock import Clock
from tierd.model import Action


def blank(layout: Layout) -> Layout:
    """The layout as a wish: without the objects and flags of the file that had it."""
    return replace(layout, generation=0, components=tuple(
        replace(c, objects=(), flags=(), component_id=0, stripe_offset=-1) for c in layout.components))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one act went: ``done``, ``dry-run``, ``refused``, ``failed`` or ``gone``, and why."""

    action: Action
    result: str
    detail: str
    entry: int
    """Its number in the journal."""
    before: Layout | None = None


class Gate:
    """Default layouts are set at once; moves wait in a queue and go as the budget allows."""

    def __init__(self, filesystem: Filesystem, budget: Budget, journal: Journal, clock: Clock, dry_run: bool) -> None:
        self._filesystem = filesystem
        self._budget = budget
        self._journal = journal
        self._clock = clock
        self._dry_run = dry_run
        self._queue: deque[tuple[Action, int]] = deque()
        self._queued: set[str] = set()
        self.outcomes: Counter[str] = Counter()
        self.paused = ""
        """Why nothing is done at present; "" when things are done."""

    @property
    def waiting(self) -> int:
        """Moves in the queue."""
        return len(self._queue)

    def submit(self, actions: Iterable[Action], finding: int) -> list[Outcome]:
        """Set default layouts now, queue the moves. Advice passes by: it is for people."""
        outcomes = []
        for action in actions:
            if action.kind == "set-default-layout":
                outcomes.append(self._act(action, finding))
            elif action.kind == "migrate" and action.path not in self._queued:
                self._queue.append((action, finding))
                self._queued.add(action.path)
        return outcomes

    def drop(self, finding_key: tuple[str, str, str]) -> int:
        """Forget the moves of one finding; how many there were."""
        kept = deque((action, number) for action, number in self._queue if action.finding != finding_key)
        dropped = len(self._queue) - len(kept)
        self._queue = kept
        self._queued = {action.path for action, _ in kept}
        return dropped

    def pump(self, deadline: float) -> list[Outcome]:
        """Carry out waiting moves until the budget is spent, the queue empty or the time up."""
        outcomes = []
        while self._queue and not self.paused and self._clock.now() < deadline:
            action, finding = self._queue[0]
            gone = self._is_gone(action.path)
            if not gone and self._budget.take(action.size_bytes, self._clock.now()):
                break
            self._queue.popleft()
            self._queued.discard(action.path)
            outcomes.append(Outcome(action, "gone", "", 0) if gone else self._act(action, finding))
        return outcomes

    def _is_gone(self, path: str) -> bool:
        """Whether the job has unlinked the file itself: no act, and nothing to spend budget on."""
        try:
            self._filesystem.status(path)
        except FileNotFoundError:
            return True
        return False

    def restore(self, entry: Entry, reason: str) -> tuple[str, str]:
        """Undo one act of the journal, unless somebody changed its place since: ``undone``, or why not."""
        result, detail = "refused", f"it is {entry.outcome or 'under way'}, so there is nothing to undo"
        if entry.outcome in {"done", "dry-run"}:
            try:
                result, detail = self._restore(entry, reason)
            except OSError as error:
                result, detail = "failed", error.strerror or str(error)
        self.outcomes[result] += 1
        if result == "undone":
            self._journal.ended(entry.id, result, detail, self._clock.now())
        return result, detail

    def _restore(self, entry: Entry, reason: str) -> tuple[str, str]:
        if entry.outcome == "dry-run":
            return "undone", reason
        present = self._filesystem.layout(entry.place)
        if present is None or entry.layout_after is None or not same_shape(present, entry.layout_after):
            return "refused", "somebody changed its layout since"
        if entry.kind == "set-default-layout":
            self._filesystem.set_default_layout(entry.place, entry.layout_before)
        elif entry.layout_before is not None:
            self._filesystem.migrate(entry.place, blank(entry.layout_before))
        return "undone", reason

    def _act(self, action: Action, finding: int) -> Outcome:
        place = action.path or action.directory
        before: Layout | None = None
        entry = 0
        try:
            before = self._filesystem.layout(place)
            entry = self._journal.intend(action, finding, before, self._clock.now(), self._dry_run)
            refusal = self._refusal(action, before)
            if refusal:
                result, detail = "refused", refusal
            elif self._dry_run:
                result, detail = "dry-run", ""
            else:
                self._change(action)
                result, detail = "done", ""
        except OSError as error:
            result, detail = "failed", f"{error.strerror or error}"
        entry = entry or self._journal.intend(action, finding, before, self._clock.now(), self._dry_run)
        self._journal.ended(entry, result, detail, self._clock.now())
        self.outcomes[result] += 1
        return Outcome(action, result, detail, entry, before)

    def _refusal(self, action: Action, before: Layout | None) -> str:
        """Why not, seen at the last moment; or ""."""
        if before is not None and same_shape(before, action.layout):
            return "it has this layout already"
        if action.kind != "migrate":
            return ""
        status = self._filesystem.status(action.path)
        if status.is_directory:
            return "it is a directory now"
        end = action.layout.components[0].extent_end
        if end is not None and status.size_bytes > end:
            return f"it has grown to {status.size_bytes} bytes and no longer fits the flash component"
        if before is not None and before.mirror_count > 1:
            return "it has mirrors, which a migration would drop"
        return ""

    def _change(self, action: Action) -> None:
        if action.kind == "set-default-layout":
            self._filesystem.set_default_layout(action.directory, action.layout)
        else:
            self._filesystem.migrate(action.path, action.layout)
