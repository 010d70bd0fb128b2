"""What the gate checks before each act: claim, mode and limits of the scope, disks of the flash pool, opt-out.

Users opt out by ``user.tierd`` on a file or on a directory above it, by ``.tierd-off`` in a directory, and by pins.
``setfattr -n user.tierd -v off DIR`` opts a directory out, with everything below it; ``on`` opts a part of it in
again: the nearest directory that says something decides. ``touch DIR/.tierd-off`` does the same as ``off``, and needs
no mount option: clients of 2.17 mount with ``nouser_xattr`` by default, and then refuse to read the attribute
(``xattr_type_filter`` in lustre/llite/xattr.c). ``lustre.pin`` is Lustre's own attribute (2.18): the file stays in the
pool that it names.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence

from lustre.errors import Unsupported
from lustre.filesystem import Filesystem
from tierd.act.claim import FilesystemClaim
from tierd.act.limits import Budget
from tierd.acts import BY_ADMINISTRATOR
from tierd.clock import Clock
from tierd.config.act import Mode, mode_allows
from tierd.config.settings import Settings
from tierd.model import Action
from tierd.refusal import Reason, Refusal
from tierd.sense.paths import join
from tierd.text import first_names, quoted


class ActGuard:
    """Refuses acts. What a guard does not define, it permits: this one permits everything."""

    def blocked_by(self) -> Refusal | None:
        """Refuses every act: another tierd holds the claim."""
        return None

    def refusal(self, action: Action) -> Refusal | None:
        """Refuses one act: the mode of its scope, a flash pool on disks, or the opt-out of its owner."""
        return None

    def opt_out_refusal(self, directory: str) -> Refusal | None:
        """Refuses acts in a directory whose owner opted out. Called before acts are planned there."""
        return None

    def budget_of(self, action: Action) -> Budget | None:
        """The budget of the scope of a move; None if the scope has no limits of its own."""
        return None


class JobCheck:
    """Checks the job of an act just before the act. This one finds every job active."""

    def idle(self, action: Action) -> Refusal | None:
        """Delays a move while the job is not seen at work."""
        return None

    def elsewhere(self, action: Action) -> Refusal | None:
        """Refuses an act in a directory where the job no longer works."""
        return None


OPT_OUT = "user.tierd"
MARKER = ".tierd-off"
PIN = "lustre.pin"
NO_USER_XATTR = (f"users' opt-outs ({OPT_OUT}) cannot be read, because the file system is mounted without user_xattr: "
                 "mount it with -o user_xattr, or set [act] without_user_xattr = true")
REMEMBER_SECONDS = 30.0
"""Time for which the opt-out of a directory is remembered. A choice: to read it costs two requests to an MDT."""
_ROOT = 0


class OptOut:
    """Reads the opt-outs. Caches those of directories for some seconds: each takes two requests to an MDT."""

    def __init__(self, filesystem: Filesystem, clock: Clock, without_user_xattr: bool = False) -> None:
        """``without_user_xattr``: an attribute that this mount cannot read counts as absent."""
        self._filesystem = filesystem
        self._clock = clock
        self._without_user_xattr = without_user_xattr
        self._known: dict[str, tuple[float, str | None]] = {}

    def of_file(self, path: str) -> Refusal | None:
        """Refuses a file whose owner opted out, that is pinned, or whose opt-out cannot be read."""
        try:
            pin = self._pin(path)
            own = self._attribute(path)
        except FileNotFoundError:
            return None  # the mover reports it
        except OSError as error:
            return _unreadable("the file", error)
        if pin:
            return Refusal(Reason.PINNED, f"the file is pinned: {' '.join(pin.decode('utf-8', 'replace').split())}")
        return _meaning(own, path) if own is not None else self.of_directory(path.rpartition("/")[0] or "/")

    def of_directory(self, path: str) -> Refusal | None:
        """Refuses a directory whose owner opted out, or whose opt-out cannot be read."""
        for directory in with_parents(path):
            try:
                word = self._of(directory)
            except FileNotFoundError:
                continue  # those above it count nevertheless
            except OSError as error:
                return _unreadable(quoted(directory), error)
            if word is not None:
                return _meaning(word, directory)
        return None

    def _of(self, directory: str) -> str | None:
        """What a directory itself says: the word of its attribute, the name of the marker, or None."""
        now = self._clock.now()
        known = self._known.get(directory)
        if known is not None and 0 <= now - known[0] < REMEMBER_SECONDS:  # negative: the clock was set back
            return known[1]
        if len(self._known) > 10_000:
            self._known.clear()  # bounds memory
        # the marker first: it counts where the attribute cannot be read, and saves reading it
        word = MARKER if self._has_marker(directory) else self._attribute(directory)
        self._known[directory] = now, word
        return word

    def _has_marker(self, directory: str) -> bool:
        try:
            marker = self._filesystem.status(join(directory, MARKER))
        except FileNotFoundError:
            return False
        # anybody can create files in a sticky directory such as /tmp: only a marker of its owner or of root counts
        # there
        there = self._filesystem.status(directory)
        return not there.mode & stat.S_ISVTX or marker.uid in {_ROOT, there.uid}

    def _attribute(self, path: str) -> str | None:
        try:
            value = self._filesystem.xattr(path, OPT_OUT)
        except Unsupported:
            if self._without_user_xattr:
                return None
            raise
        return value.rstrip(b"\0\n").decode("utf-8", "replace").strip().lower() if value else None

    def _pin(self, path: str) -> bytes:
        try:
            return self._filesystem.xattr(path, PIN)
        except Unsupported:  # a release without pins
            return b""


def _meaning(word: str, place: str) -> Refusal | None:
    if word == "on":
        return None
    if word == MARKER:
        return Refusal(Reason.OPTED_OUT, f"{quoted(join(place, MARKER))} exists: the owner opted out")
    if word == "off":
        return Refusal(Reason.OPTED_OUT, f"{OPT_OUT} is off at {quoted(place)}: the owner opted out")
    return Refusal(Reason.OPTED_OUT,
                   f"{OPT_OUT} is {word!r} at {quoted(place)}, neither on nor off, so tierd changes nothing there")


def _unreadable(what: str, error: OSError) -> Refusal:
    if isinstance(error, Unsupported):
        return Refusal(Reason.OPT_OUT_UNREADABLE, NO_USER_XATTR)
    return Refusal(Reason.OPT_OUT_UNREADABLE, f"tierd cannot read the opt-out of {what}: {error.strerror or error}")


def with_parents(path: str) -> Iterator[str]:
    """A directory and those above it.

    >>> list(with_parents("/proj/a"))
    ['/proj/a', '/proj', '/']
    """
    while path not in {"", "/"}:
        yield path
        path = path.rpartition("/")[0]
    yield "/"


class SiteGuard(ActGuard):
    """Checks the claim of the file system, the opt-out of owners, and the modes and limits of scopes."""

    def __init__(self, settings: Settings, opt_out: OptOut, claim: FilesystemClaim, clock: Clock,
                 rotating: Callable[[str], Sequence[str]] = lambda pool: (),
                 approved: Callable[[tuple[str, str, str]], bool] = lambda key: False) -> None:
        """``rotating`` returns the targets of a pool that are known to be on rotating disks. ``approved`` returns
        whether acts about a finding were approved.
        """
        self._approved = approved
        self._settings = settings
        self._rotating = rotating
        self._opt_out = opt_out
        self._claim = claim
        self._budgets = {scope.path: Budget(scope.limits, clock.now(), scope.path)
                         for scope in settings.scopes if scope.limits}

    def blocked_by(self) -> Refusal | None:
        """A dry run needs no claim, since it changes nothing."""
        if self._settings.act.dry_run:
            return None
        # a claim is taken once; after that each act only reads it, and a thread of its own renews it
        return (self._claim.hold() if not self._claim.generation else None) or self._claim.refusal()

    # modes limit what tierd decides by itself: neither a person's order nor an undo
    def refusal(self, action: Action) -> Refusal | None:
        mode = self._settings.resolved_scopes.of(action.path or action.directory).mode
        ordered = action.finding[0] in BY_ADMINISTRATOR or action.undoes is not None
        if not ordered and not mode_allows(mode, action.kind):
            return Refusal(Reason.MODE, f"mode {mode} applies there")
        if not ordered and mode is Mode.ASK and not self._approved(action.finding):
            return Refusal(Reason.NOT_APPROVED, "mode ask applies there, and nobody approved it")
        for pool in self._settings.resolved_scopes.flash_pools & {part.pool for part in action.layout.components}:
            if rotating := self._rotating(pool):
                targets = first_names(rotating)
                return Refusal(Reason.POOL_ROTATES, f"pool {pool!r} is not flash; these targets rotate: {targets}")
        return self._opt_out.of_file(action.path) if action.path else self._opt_out.of_directory(action.directory)

    def opt_out_refusal(self, directory: str) -> Refusal | None:
        return self._opt_out.of_directory(directory) if directory.startswith("/") else None

    def budget_of(self, action: Action) -> Budget | None:
        return self._budgets.get(self._settings.resolved_scopes.of(action.path or action.directory).path)
