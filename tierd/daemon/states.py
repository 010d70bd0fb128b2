"""The states of a remediation, the steps between them, and the words for them in all output.

A remediation is what tierd does about one finding::

    planned -> acting -> judging -> kept | undoing -> undone
    kept, undone -> closed (the finding has ended) -> forgotten

This module imports next to nothing: tierctl uses its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tierd.acts import Outcome, Verdict
from tierd.text import Carrier, count_of, percent, rate_text


class State(StrEnum):
    """State of a remediation."""

    PLANNED = "planned"
    """Its acts are queued; none was done yet."""
    ACTING = "acting"
    """Default layouts were set or files moved; more are queued."""
    JUDGING = "judging"
    """All default layouts are set. The throughput of the victim is measured."""
    KEPT = "kept"
    """Its acts stand: they helped, cannot be judged, or there was nothing to judge."""
    UNDOING = "undoing"
    """Its default layouts are being restored. What fails is tried again."""
    UNDONE = "undone"
    """Its default layouts were restored, by tierd or by hand."""
    CLOSED = "closed"
    """The finding has ended, and nothing more is done, except moves for a neighbour that was active before tierd
    started."""


OPEN = frozenset({State.PLANNED, State.ACTING, State.JUDGING})
"""States before the verdict."""
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PLANNED: frozenset({State.ACTING, State.JUDGING, State.KEPT, State.UNDOING, State.UNDONE}),
    State.ACTING: frozenset({State.JUDGING, State.KEPT, State.UNDOING, State.UNDONE}),
    # a job that moves on to other directories gets default layouts there too
    State.JUDGING: frozenset({State.ACTING, State.KEPT, State.UNDOING, State.UNDONE}),
    # flash runs full, or an administrator undoes the acts
    State.KEPT: frozenset({State.UNDOING, State.UNDONE, State.CLOSED}),
    State.UNDOING: frozenset({State.UNDONE}),
    # a default layout that was being set meanwhile has to be restored too
    State.UNDONE: frozenset({State.UNDOING, State.CLOSED}),
    State.CLOSED: frozenset({State.UNDOING, State.UNDONE}),
}
"""Each state, and the states that may follow it."""

STATE_TEXTS: Mapping[State, str] = {
    State.PLANNED: "acts are queued",
    State.ACTING: "acts are under way",
    State.JUDGING: "the throughput of the victim is measured",
    State.UNDOING: "default layouts are being restored",
}
"""What is under way in a state, for people. Wherever a state is shown, its name is the value of :class:`State`."""
FOUND = "found"
"""What is shown in place of a state for a finding without a remediation."""
VERDICT_TEXTS: Mapping[str, tuple[str, str]] = {
    Verdict.HELPED: ("helped", "kept"), Verdict.DID_NOT_HELP: ("did not help", "undone"),
    Verdict.HARMED_OTHERS: ("slowed other jobs", "undone"), Verdict.UNDONE_BY_HAND: ("by hand", "undone"),
    Verdict.CANNOT_TELL: ("cannot be judged", "kept"),
}
"""What people read of each verdict, and what became of the acts."""
UNDOING_VERDICTS = frozenset({Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS, Verdict.UNDONE_BY_HAND})
"""Verdicts after which the acts of a remediation are undone."""


def verdict_text(verdict: str) -> str:
    """A verdict for people.

    >>> verdict_text("helped"), verdict_text("")
    ('helped; kept', 'nothing to judge')
    """
    words, became = VERDICT_TEXTS.get(verdict, (verdict or "nothing to judge", ""))
    if verdict == Verdict.UNDONE_BY_HAND:
        return f"{became} {words}"
    return f"{words}; {became}" if became else words


def stream_sentence(aggressor: str, victim: str, numbers: Mapping[str, float], *, past: bool) -> str:
    """A slowed stream in a sentence, from the numbers of the evidence; empty for other findings.

    >>> rates = {"victim_usual_bytes_per_second": 66e6, "victim_bytes_per_second": 44e6, "loss_low": 0.2,
    ...          "loss_high": 0.4}
    >>> stream_sentence("n.2", "s.1", rates, past=True)
    's.1 streamed at 44.0 MB/s instead of 66.0 MB/s (67%) alongside n.2; loss 20% to 40%'
    >>> stream_sentence("n.2", "s.1", rates | {"carrier": 4.0}, past=False)
    's.1 streams at 44.0 MB/s alongside n.2; without it, 66.0 MB/s are expected by device time; loss 20% to 40%'
    >>> stream_sentence("", "", {}, past=True)
    ''
    """
    usual, rate = numbers.get("victim_usual_bytes_per_second"), numbers.get("victim_bytes_per_second")
    low, high = numbers.get("loss_low"), numbers.get("loss_high")
    if not victim or not usual or rate is None or low is None or high is None:
        return ""
    what, loss = f"{victim} {'streamed' if past else 'streams'} at {rate_text(rate)}", (
        f"; loss {percent(low)} to {percent(high)}")
    if numbers.get("carrier") == Carrier.DEVICE_TIME:
        return (f"{what} alongside {aggressor}; without it, {rate_text(usual)} {'were' if past else 'are'} expected by "
                f"device time{loss}")
    return f"{what} instead of {rate_text(usual)} ({percent(rate / usual)}) alongside {aggressor}{loss}"


def files_text(moves: Mapping[str, int], waiting: int, needless: int = 0, *, held: bool) -> str:
    """What became of the files of a case.

    >>> files_text({"done": 47, "already": 2, "gave-way": 1}, 90, held=True)
    '47 files moved, 90 wait while the effect is measured; not moved: 2 as wanted before, 1 gave way'
    >>> files_text({"done": 20, "gone": 1}, 0, 30, held=False)
    '20 files moved; not moved: 1 gone, 30 needed no move'
    >>> files_text({"dry-run": 1}, 0, held=False), files_text({"undone": 3}, 0, held=False)
    ('1 file would be moved', '0 files moved, 3 moved back')
    >>> files_text({}, 0, held=False)
    ''
    """
    moved, dry, back = (moves.get(outcome, 0) for outcome in (Outcome.DONE, Outcome.DRY_RUN, Outcome.UNDONE))
    left = sorted(((count, outcome) for outcome, count in moves.items() if outcome not in {
        Outcome.DONE, Outcome.DRY_RUN, Outcome.UNDONE}), reverse=True)
    if not (moves or waiting or needless):
        return ""
    parts = [f"{count_of(dry, 'file')} would be moved" if dry else f"{count_of(moved, 'file')} moved"]
    if back:
        parts.append(f"{back} moved back")
    if waiting:
        parts.append(f"{waiting} wait{' while the effect is measured' if held else ''}")
    why = ", ".join([*(f"{count} {'as wanted before' if outcome == Outcome.ALREADY else outcome.replace('-', ' ')}"
                       for count, outcome in left),
                     *([f"{needless} needed no move"] if needless else [])])
    return ", ".join(parts) + (f"; not moved: {why}" if why else "")
