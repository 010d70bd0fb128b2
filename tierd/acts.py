"""Kinds of acts and orders, outcomes of acts, and verdicts on acts.

The values are the words of the journal, of the labels of metrics and of ``--json``: they never change.
"""

from __future__ import annotations

from enum import StrEnum


class ActKind(StrEnum):
    """What an act changes."""

    SET_DEFAULT_LAYOUT = "set-default-layout"
    """The default layout of a directory, which new files in it get."""
    SET_DEFAULT_STRIPING = "set-default-striping"
    """The default striping of a directory over MDTs, which new subdirectories get."""
    MIGRATE = "migrate"
    """The layout of one file; its data moves."""


DEFAULT_KINDS = frozenset({ActKind.SET_DEFAULT_LAYOUT, ActKind.SET_DEFAULT_STRIPING})
"""Acts that set a default of a directory."""


class OrderKind(StrEnum):
    """Who ordered moves that no finding asks for. The first part of the key of these moves."""

    REQUEST = "request"
    """An administrator, by the names of files."""
    DRAIN = "drain"
    """An administrator, who wants a target emptied."""
    SUBMISSION = "submission"
    """A program such as robinhood."""
    STAGING = "staging"
    """A job of a scheduler (:mod:`tierd.act.staging`)."""
    PREPARATION = "preparation"
    """A scheduler, which wants a default layout before a job starts (:mod:`tierd.act.applications`)."""


ORDER_KINDS = frozenset(OrderKind)


def name_of(number: int, kind: str = "") -> str:
    """The name of a finding or an order. They share the numbers.

    >>> name_of(3, "noisy-neighbour"), name_of(4, OrderKind.DRAIN), name_of(5, OrderKind.REQUEST)
    ('F3', 'D4', 'O5')
    """
    return f"{'D' if kind == OrderKind.DRAIN else 'O' if kind in ORDER_KINDS else 'F'}{number}"


BY_ADMINISTRATOR = frozenset({OrderKind.REQUEST, OrderKind.DRAIN})
"""Orders to which modes do not apply."""


class Outcome(StrEnum):
    """How an act ended."""

    UNDER_WAY = "under way"
    """It has not ended, or tierd was killed during it."""
    DONE = "done"
    DRY_RUN = "dry-run"
    """tierd would have done it."""
    ALREADY = "already"
    """The file had the layout before."""
    REFUSED = "refused"
    """tierd did not try it. The detail has the reason."""
    GAVE_WAY = "gave-way"
    """Somebody used or changed the file meanwhile. The file is as they left it."""
    FAILED = "failed"
    """Lustre reported an error. The file or directory is unchanged."""
    DOUBTFUL = "doubtful"
    """The file is not as expected after its move. The circuit breaker stops all moves."""
    GONE = "gone"
    """The file or directory was removed or replaced."""
    INTERRUPTED = "interrupted"
    """tierd ended during the act, which did not take effect, or cannot be examined."""
    UNDOING = "undoing"
    """The undo of the act is under way."""
    UNDONE = "undone"


class Verdict(StrEnum):
    """The effect of one act, or of the acts for one finding."""

    NONE = ""
    """There is no verdict yet, or nothing to judge."""
    TOO_EARLY = "too-early"
    HELPED = "helped"
    DID_NOT_HELP = "did-not-help"
    HARMED_OTHERS = "harmed-others"
    CANNOT_TELL = "cannot-tell"
    """A job has ended, or the figures are in doubt."""
    UNDONE_BY_HAND = "taken-back"
    """An administrator undid the acts."""


JUDGED_VERDICTS = (Verdict.HELPED, Verdict.DID_NOT_HELP, Verdict.HARMED_OTHERS, Verdict.CANNOT_TELL)
"""Verdicts that a measurement can give."""
