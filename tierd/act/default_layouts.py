"""Setting the default layout of a directory, with a look at what is there just before.

For :mod:`tierd.act.gate` alone.
"""

from __future__ import annotations

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from lustre.layout import Layout, same_shape
from tierd.act.changing_defaults import give, kept
from tierd.act.endings import Endings, Outcome
from tierd.act.guard import Guard
from tierd.act.journal import Journal
from tierd.act.standstill import Halt
from tierd.clock import Clock
from tierd.model import Action
from tierd.text import quoted


class DefaultLayouts:
    """Those of directories: an intent, the act, its outcome."""

    def __init__(self, filesystem: Filesystem, journal: Journal, endings: Endings, guard: Guard, halt: Halt,
                 clock: Clock, dry_run: bool) -> None:
        self._filesystem = filesystem
        self._journal = journal
        self._endings = endings
        self._guard = guard
        self._halt = halt
        """Why nothing may be begun, or ""."""
        self._clock = clock
        self._dry_run = dry_run

    def set(self, action: Action, finding: int) -> Outcome:
        """Set it, unless somebody put another directory there, wants it left alone, or nothing may be done."""
        before: Layout | None = None
        of_the_root: Layout | None = None
        fid: Fid | None = None
        refusal = failure = ""
        try:
            before = self._filesystem.layout(action.directory)
            of_the_root = None if before is not None else self._filesystem.layout("/")
            fid = self._filesystem.status(action.directory).fid
            real = self._filesystem.path_of(fid)
            if real != action.directory:  # somebody's link where a directory was leads anywhere
                refusal = f"the path leads to {quoted(real)} now"
        except OSError as error:
            failure = error.strerror or str(error)
        entry = self._journal.intend(action, finding, before, self._clock.now(), self._dry_run, fid)
        if not refusal and before is not None and same_shape(before, action.layout):
            refusal = "it has this layout already"
        refusal = refusal or kept(before, of_the_root) or self._halt() or self._guard.refusal(action)
        try:
            if not (failure or refusal or self._dry_run):
                failure = give(self._filesystem, action.directory, action.layout, before)
        except (OSError, ValueError) as error:  # the latter: a layout Lustre cannot have
            failure = getattr(error, "strerror", None) or str(error)
        result = "failed" if failure else "refused" if refusal else "dry-run" if self._dry_run else "done"
        return self._endings.ended(action, result, failure or refusal, entry, before)
