"""The answers of the control socket, and their form in JSON.

:func:`to_json` and :meth:`Struct.from_json` are the only code that knows the JSON. A key is the name of the field. JSON
has no infinity and no NaN: such a number is null.

The module imports little: ``tierctl status`` must start quickly on a loaded node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tierd.acts import ORDER_KINDS, OrderKind, Outcome, name_of
from tierd.daemon.states import STATE_TEXTS, UNDOING_VERDICTS, VERDICT_TEXTS, State, files_text, verdict_text
from tierd.structs import Advice, MessageRow, SameFindingRow, Struct, finite
from tierd.text import bytes_text, count_of, quoted, rate_text, regained_text

Json = Mapping[str, object]
"""A JSON object."""
Ask = Callable[[Json], Json]
"""The answer to a request. Raises ValueError for an unknown or invalid one, and an error if nobody answers."""
DESTINATIONS = {"promote": "to flash", "demote": "to HDD"}


class NoAnswerError(Exception):
    """A request may make sense, but what would answer it cannot be read now."""


def to_json(answer: Struct) -> dict[str, object]:
    """The JSON object of an answer, for :func:`json.dumps`: names of files may have bytes that msgspec cannot write."""
    found = finite(msgspec.to_builtins(answer, enc_hook=dict))  # a mapping of another kind
    assert isinstance(found, dict)
    return found


# Parts of answers


class RefusalAnswer(Struct, frozen=True):
    """Why something is not done, and what would change that."""

    reason: str
    sentence: str
    remedy: str
    """Empty where nothing would."""


class ActionAnswer(Struct, frozen=True, kw_only=True):
    """A planned act."""

    action: str
    """Its kind."""
    path: str = ""
    directory: str = ""
    layout: str
    """Arguments of ``lfs setstripe`` and ``lfs migrate``; words in parentheses if they cannot express it."""
    reason: str
    size_bytes: int = 0


class ActAnswer(Struct, frozen=True):
    """An act in the journal."""

    id: int
    time: float
    kind: str
    place: str
    size_bytes: int
    outcome: str
    detail: str
    before: str | None
    """Layout before the act, in words."""
    after: str | None
    reason: str


class SourceAnswer(Struct, frozen=True):
    """A source of counters or records."""

    name: str
    age_seconds: float | None
    """None before the first data."""
    limit_seconds: float
    stale: bool
    state: str


class JobTimeRow(Struct, frozen=True):
    """Part of a target's service time that a job takes, and its standard error."""

    job: str
    share: float
    error: float


class TargetTimeRow(Struct, frozen=True):
    """Share of the time in which a target is busy, and the jobs that take most of it."""

    target: str
    utilisation: float
    jobs: tuple[JobTimeRow, ...]


class Case(Struct, frozen=True, kw_only=True):
    """The one record of a finding, and of what is done about it, for the page, tierctl and the control socket.

    Rates in bytes per second, times in epoch seconds; None: not known.
    """

    finding: int
    """Number in the journal."""
    kind: str
    sentence: str
    """In the past tense once the finding has ended, or its acts were judged and stand."""
    aggressor: str
    victim: str
    subject: str
    active: bool
    """Whether the finding holds."""
    since: float
    """When it was found."""
    onset: float | None = None
    """Start of the aggressor; None if it was active before the stream was seen, and for findings without a victim."""
    ended_at: float | None = None
    """When the finding ended; None while it holds."""
    targets: tuple[str, ...]
    directories: tuple[str, ...]
    usual: float | None = None
    """Rate of the victim without the aggressor."""
    contended: float | None = None
    """Beside the aggressor, before any act."""
    loss_low: float | None = None
    """The interval that holds its loss, as a part of ``usual``, with a probability of 90%."""
    loss_high: float | None = None
    now: float | None = None
    """In the last seconds; None without a curve."""
    after: float | None = None
    """As measured for the verdict; None if the acts were undone for another reason than the verdict."""
    regained: tuple[float, float, float] | None = None
    """Part of the loss that the victim had regained by then, and the ends of its interval of 90%."""
    state: str = ""
    """See :class:`tierd.daemon.states.State`; empty without a remediation."""
    dry_run: bool = False
    """Whether nothing was changed for it."""
    verdict: str = ""
    measured_text: str = ""
    """The verdict and what it rests on, where that is not a rate: of a rebalance."""
    judged: bool = False
    undo_reason: str = ""
    """Why its default layouts are being restored, or were; empty if they stand or an administrator undid them."""
    why_not: tuple[RefusalAnswer, ...] = ()
    """Why not more is done while the finding holds."""
    acted_at: float | None = None
    """When the first default layout was set, or the first file was moved."""
    judged_at: float | None = None
    advice_only: bool = False
    advice: tuple[Advice, ...] = ()
    evidence: Mapping[str, float | None] = {}
    """Numbers by name, None for infinity."""
    defaults: tuple[DefaultLayoutRow, ...] = ()
    """Default layouts in force."""
    waiting_defaults: int = 0
    moves: Mapping[str, int] = {}
    """Number of its files whose move has ended, by outcome, as the journal has them."""
    needless_moves: int = 0
    """Number of its queued files since the start of tierd that needed no move: they were gone, or as wanted."""
    waiting_moves: int = 0
    moves_held: bool = False
    """Whether its moves wait, so that the effect is measured without them."""
    curve: tuple[tuple[float, float], ...] = ()
    """Time and rate of the victim in each window."""
    time_before: TargetTimeRow | None = None
    """Device time of the targets by job, before the first act; None if it is not known or nothing was done."""
    time_now: TargetTimeRow | None = None

    @property
    def name(self) -> str:
        """``F3``, or ``D3`` and ``O3`` of orders."""
        return name_of(self.finding, self.kind)

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity of the problem over time."""
        return self.kind, self.aggressor, self.victim or self.subject

    @property
    def loss(self) -> float:
        """Part of its usual rate that the victim lost to the aggressor."""
        return 1 - (self.contended or 0.0) / self.usual if self.usual else 0.0

    @property
    def moved(self) -> int:
        """Number of files that were moved, and not moved back."""
        return self.moves.get(Outcome.DONE, 0)

    @property
    def state_text(self) -> str:
        """The state, with the verdict or what it waits for; a dry run has no verdict. Empty for an order."""
        state, reason = self.state, self.undo_reason
        if self.kind in ORDER_KINDS:
            return ""
        if not state:
            return "not acted on"
        if self.dry_run and not self.verdict and state in {State.KEPT, State.CLOSED}:
            return f"{state}: dry run, nothing was changed"
        if reason and self.verdict not in UNDOING_VERDICTS and state in {State.UNDONE, State.CLOSED}:
            return f"{state}: {'' if state == State.UNDONE else 'undone: '}{reason}"
        if state in {State.KEPT, State.UNDONE, State.CLOSED}:
            words, became = VERDICT_TEXTS.get(self.verdict, ("", ""))
            return f"{state}: {words if became == state else verdict_text(self.verdict)}"
        return f"{state}: {reason or STATE_TEXTS[State(state)]}"

    @property
    def gain_text(self) -> str:
        """What the acts brought the victim, as measured for the verdict: its rates, and the part of the loss regained.

        Empty before the verdict, and where a rate is not known.
        """
        if self.measured_text or not self.judged or self.contended is None or self.after is None:
            return self.measured_text
        return f"{rate_text(self.contended)} before the acts, {rate_text(self.after)} after" + (
            f": {self.regained_text}" if self.regained else "")

    @property
    def regained_text(self) -> str:
        return regained_text(*self.regained) if self.regained else ""

    @property
    def files_text(self) -> str:
        """What became of its files; empty if none is to be moved."""
        return files_text(self.moves, self.waiting_moves, self.needless_moves, held=self.moves_held)

    @property
    def done_text(self) -> str:
        """The state, what the acts brought, and what became of the files: the same words in all views."""
        waiting = f"{count_of(self.waiting_defaults, 'default layout')} to set" if self.waiting_defaults else ""
        return "; ".join(filter(None, (self.state_text, self.gain_text, waiting, self.files_text)))

    @property
    def result_text(self) -> str:
        """What was done, or why nothing is done."""
        if self.state or not self.why_not:
            return self.done_text
        return f"{self.state_text}: {'; '.join(why.sentence for why in self.why_not)}"


class DefaultLayoutRow(Struct, frozen=True):
    """A default layout that a case has set."""

    act: int
    directory: str
    layout: str
    """In words."""


class PoolRow(Struct, frozen=True):
    """A pool; bytes and operations per second over its targets."""

    pool: str
    targets: int
    size_bytes: int
    avail_bytes: int
    read_bytes: float
    write_bytes: float
    operations: float
    utilisation: float | None
    """Mean over the targets whose service costs are known."""


# Answers


class ChangeAnswer(Struct, frozen=True):
    """The answer to a request that changes something."""

    @property
    def lines(self) -> list[str]:
        """What was done, for people."""
        raise NotImplementedError

    @property
    def succeeded(self) -> bool:
        return True


class OperatingStateAnswer(ChangeAnswer, frozen=True, kw_only=True):
    """What holds acts back, in words, and the queue. Empty words: nothing does."""

    paused: str
    held: str
    draining: str
    pause_file: str = ""
    blocked: str = ""
    """A fault with which tierd cannot act."""
    waiting_moves: int
    waiting_bytes: int

    @property
    def restraint(self) -> tuple[str, str]:
        """What keeps tierd from acting, as a word and its reason in words: the first of several. Empty: nothing."""
        every = (("PAUSED", self.paused or self.pause_file), ("CANNOT ACT", self.blocked),
                 ("OUTSIDE ITS WINDOW", self.held), ("DRAINING", self.draining))
        return next((each for each in every if each[1]), ("", ""))

    @property
    def lines(self) -> list[str]:
        word, why = self.restraint
        left = f"{count_of(self.waiting_moves, 'move')} left, {bytes_text(self.waiting_bytes)}"
        only_undo = "the current move finishes; after that only tierctl undo changes anything"
        more = {"PAUSED": [only_undo] if self.paused else [],
                "DRAINING": [left if self.waiting_moves else "the queue is empty"]}
        return [f"{word.lower()}: {why}", *more.get(word, [])] if word else ["running"]


class StatusAnswer(OperatingStateAnswer, frozen=True, kw_only=True):
    """``tierctl status``, and a part of ``tierctl top``."""

    time: float
    mode: str
    scopes: Mapping[str, str]
    """Mode of each directory with its own."""
    dry_run: bool
    faults: Mapping[str, str]
    """What cannot be observed, by source."""
    cases: tuple[Case, ...]
    """Without curves and device times. Those whose finding holds come first."""
    advice: int
    """Number of findings that are advice."""
    last_cycle: float | None
    windows: int
    least_windows: int
    looking_since: float | None
    history_seconds: float
    learning: bool = False
    """Whether too little is known to conclude that no stream is slowed."""
    device_time: tuple[TargetTimeRow, ...] = ()
    """The busiest targets."""
    waiting_orders: int
    under_way_moves: int
    waiting_defaults: int
    waits_for: str
    """The limit that the first queued move waits for."""
    moves_to_requeue: int = 0
    """Moves from before a restart that were not examined yet."""
    moves_not_persisted: int = 0
    """Moves that a restart would lose."""
    not_requeued: Mapping[str, int] = {}
    """Moves from before a restart that were dropped, by reason."""
    moved_bytes: int
    outcomes: Mapping[str, int]
    """Number of acts by kind and outcome, as ``"migrate done"``."""
    needless_moves: int = 0
    """Queued moves that needed no act: the file was gone, or as wanted."""
    drains: Mapping[str, str] = {}
    """Phase of each drain that has not ended, by its target."""
    busy: tuple[str, ...] = ()
    """Which activities take long, and what each waits for."""
    stalled: tuple[str, ...] = ()
    sources: tuple[SourceAnswer, ...] = ()
    users: Mapping[str, str] = {}
    """Users of the jobs of findings and cases, as far as their job ids name them: ``alice (1002)`` or ``1002``.

    ``tierctl top`` has those of its jobs as well."""


class MdtReaderRow(Struct, frozen=True, kw_only=True):
    """Who reads the changelog of an MDT."""

    mdt: str
    reader: str
    """Name of the reader of the last tally; "" before the first."""
    position: int
    """Index of the last record that tierd has."""
    behind_records: int | None
    """Records that a reader has read and tierd has not; None if no reader says that it reads the MDT."""
    age_seconds: float | None
    """Time since the last tally; None before the first."""
    problem: str = ""


class ReaderRow(Struct, frozen=True, kw_only=True):
    """A changelog reader, from its own report."""

    name: str
    host: str
    started: float
    mdts: tuple[str, ...]
    records: int
    """Records since its start."""
    waiting: int
    """Tallies that wait for tierd."""
    problem: str = ""


class ReadersAnswer(Struct, frozen=True, kw_only=True):
    """``tierctl readers``."""

    enabled: bool
    """Whether tierd takes changelog records from readers."""
    mdts: tuple[MdtReaderRow, ...] = ()
    readers: tuple[ReaderRow, ...] = ()


class TargetRow(Struct, frozen=True, kw_only=True):
    """Load of a target; bytes and operations per second."""

    target: str
    read_bytes: float
    write_bytes: float
    operations: float
    jobs: int
    slowdown: float | None
    condition: str
    pool: str = ""
    used: float | None = None
    """Used share of its space; None if unknown."""
    latency_usec: float | None = None
    """Mean service time of bulk RPCs; None if the servers print none, or there were no RPCs."""


class JobRow(Struct, frozen=True, kw_only=True):
    """Load of a job; bytes, operations and creates per second."""

    job: str
    read_bytes: float
    write_bytes: float
    operations: float
    creates: float
    targets: int
    role: str
    """``noise``, ``slowed`` or empty."""


class TopAnswer(StatusAnswer, frozen=True, kw_only=True):
    """``tierctl top``."""

    findings: tuple[Case, ...]
    """Those that hold."""
    seconds: float
    """Length of the window. 0 before the first."""
    targets: tuple[TargetRow, ...]
    all_targets: int
    jobs: tuple[JobRow, ...]
    all_jobs: int


class OverviewAnswer(TopAnswer, frozen=True, kw_only=True):
    """The page of tierd. Its findings are those that are advice; the first case has its curve and device times."""

    fsname: str
    mount: str
    version: str
    options: str
    """Options with which tierctl finds this tierd: `` --fs scratch``; empty if it needs none."""
    all_cases: int
    times: tuple[TargetTimeRow, ...]
    """Device time of ``targets``, as far as it is known."""
    pools: tuple[PoolRow, ...]
    reasons: Mapping[str, int]
    """Number of acts that were not carried out, by outcome and reason, with ``#`` for figures; most first."""


class RateRow(Struct, frozen=True):
    """Rates of a target or of a job, per second."""

    name: str
    read_bytes: float
    write_bytes: float
    operations: float
    """On OSTs."""
    metadata_operations: float


class RatesAnswer(Struct, frozen=True, kw_only=True):
    """The rates of one target or job over time."""

    since: float
    until: float
    step_seconds: float
    """Time between two points, and the time over which each is the mean. A curve has a gap where points are missing."""
    points: tuple[tuple[float, float, float, float, float], ...]
    """Time, and the rates in the order of :class:`RateRow`; oldest first."""


class MomentAnswer(Struct, frozen=True, kw_only=True):
    """All targets and the busiest jobs at one past time."""

    time: float | None = None
    """End of the time of the record; None if the journal has none."""
    seconds: float = 0.0
    """Length of this time."""
    earlier: float | None = None
    """Time of the record before; None if there is none."""
    later: float | None = None
    targets: tuple[RateRow, ...] = ()
    jobs: tuple[RateRow, ...] = ()


class ListAnswer(Struct, frozen=True, kw_only=True):
    """Targets or jobs as they were searched and sorted."""

    found: int
    """Number of all that match; the answer has the first of them."""
    targets: tuple[TargetRow, ...] = ()
    jobs: tuple[JobRow, ...] = ()
    users: Mapping[str, str] = {}
    device_time: tuple[TargetTimeRow, ...] = ()


class AboutAnswer(Struct, frozen=True, kw_only=True):
    """One target or one job now, and its cases."""

    name: str
    target: TargetRow | None = None
    job: JobRow | None = None
    """Both None: it is not active."""
    device_time: TargetTimeRow | None = None
    beside: tuple[RateRow, ...]
    """The targets of the job, or the jobs on the target: those with the most operations first."""
    all_beside: int
    cases: tuple[Case, ...]
    """Its last findings and orders, the newest first, without curves."""
    users: Mapping[str, str]


class FindingsAnswer(Struct, frozen=True):
    """``tierctl findings`` and ``tierctl advise``."""

    findings: tuple[Case, ...]
    looked: bool
    """Whether two readings were compared."""
    users: Mapping[str, str] = {}


class HistoryAnswer(Struct, frozen=True, kw_only=True):
    """``tierctl history``."""

    entries: tuple[ActAnswer, ...]
    all_outcomes: Mapping[str, int] = {}
    """Number of acts by outcome, where ``entries`` is empty."""
    complete_since: float | None = None


class PlannedAnswer(Struct, frozen=True, kw_only=True):
    """What would be done about a finding."""

    finding: Case
    actions: tuple[ActionAnswer, ...]
    recommended: tuple[ActionAnswer, ...]
    """Acts that the mode excludes."""
    refusals: tuple[str, ...]


class PlanAnswer(Struct, frozen=True):
    """``tierctl plan``."""

    plans: tuple[PlannedAnswer, ...]
    status: StatusAnswer


class ExplainAnswer(Struct, frozen=True, kw_only=True):
    """``tierctl explain``."""

    case: Case
    ordered: bool
    """Whether it is an order and no finding."""
    acts: tuple[ActAnswer, ...]
    all_acts: int
    bytes_moved: int
    outcomes: Mapping[str, int]
    messages: tuple[MessageRow, ...]
    """What was logged about it, and first that it was found."""
    same: tuple[SameFindingRow, ...]
    users: Mapping[str, str] = {}


class OrderAnswer(ChangeAnswer, frozen=True, kw_only=True):
    """``tierctl promote`` and ``tierctl demote``."""

    path: str
    direction: str
    files: int
    size_bytes: int
    left_out: Mapping[str, int]
    """Number of files by reason."""
    refused: int = 0
    """Number of files that were left out, and are not where they are wanted."""
    dry_run: bool
    preview: bool
    held: str

    @property
    def succeeded(self) -> bool:
        return self.files > 0 or not self.refused

    @property
    def lines(self) -> list[str]:
        amount = f"{count_of(self.files, 'file')} ({bytes_text(self.size_bytes)})"
        what = f"{amount} of {quoted(self.path)} for migration {DESTINATIONS[self.direction]}"
        if not self.files:
            lines = [f"nothing to {self.direction} at {quoted(self.path)}"]
        elif self.preview:
            lines = [f"would queue {what}"]
        elif self.held:
            lines = [f"queued {what}; the files wait: {self.held}"]
        else:
            dry = "; dry run: tierd moves nothing" if self.dry_run else ""
            lines = [f"queued {what}{dry}; see tierctl status and tierctl history"]
        return [*lines, *(f"  left out: {count}: {why}" for why, count in self.left_out.items())]


class LeftRow(Struct, frozen=True, kw_only=True):
    """Files that stay on a drained target for one reason."""

    sentence: str
    count: int
    examples: tuple[str, ...]


class DrainRow(Struct, frozen=True, kw_only=True):
    """A drain of one OST."""

    target: str
    by: str
    order: int
    """Number in the journal; 0 if files are only counted."""
    phase: str
    preview: bool
    begun_at: float
    passes: int
    position: str
    """Last directory whose files are all dealt with in this pass."""
    examined: int
    found_files: int
    found_bytes: int
    queued_moves: int
    files_moved: int
    used_bytes: int | None
    """None if the target cannot be reached."""
    used_bytes_at_begin: int
    seconds_left: float | None
    """At the rate since the beginning; None if there is none."""
    left: tuple[LeftRow, ...]
    stop_command: str
    """The command that stops new objects; "" if they are stopped."""
    give_back_command: str
    waits_for: str = ""
    """What delays its moves: streams at work, or a limit; "" for nothing."""

    @property
    def name(self) -> str:
        return f"drain of {self.target}" + (f" (order {name_of(self.order, OrderKind.DRAIN)})" if self.order else "")

    @property
    def state(self) -> str:
        """The phase in words."""
        return "dry run: counting files" if self.preview and self.phase == "running" else DRAIN_STATES[self.phase]


DRAIN_STATES = {
    "running": "moving files", "paused": "paused", "empty": "empty: no file with an object there was found",
    "incomplete": "incomplete: files are left", "previewed": "dry run, done", "ended": "ended",
}
"""Phases in words."""


class DrainsAnswer(Struct, frozen=True):
    """``tierctl drain-target``."""

    time: float
    drains: tuple[DrainRow, ...]


class DrainPlanAnswer(Struct, frozen=True, kw_only=True):
    """What ``tierctl drain-target`` asks about before it begins."""

    target: str
    used_bytes: int
    pools: Mapping[str, tuple[str, ...]]
    """Targets that its files may move to, by pool."""
    bytes_per_second: float
    """Limit of all moves."""
    stop_command: str
    """The command that stops new objects; "" if they are stopped."""
    dry_run: bool
    """Whether files would only be counted."""
    held: str
    """Why no moves would begin now; "" if they would."""


class SubmitAnswer(Struct, frozen=True):
    """``tierctl submit``."""

    accepted: int
    waiting_orders: int


class StagingAnswer(Struct, frozen=True, kw_only=True):
    """A file or tree that a job of a scheduler wants on flash, or on the disks."""

    id: int
    job: str
    user: str
    direction: str
    """``promote`` or ``demote``."""
    path: str
    state: str
    """accepted, moving, ended, expired, cancelled."""
    open: bool
    """Whether more may happen."""
    succeeded: bool
    """Whether every file is where the job wants it."""
    finding: int
    """Number of the order in the journal; 0 before it is planned."""
    files: int
    size_bytes: int
    in_place: int
    """Files that were there already."""
    created_at: float
    deadline_at: float
    outcomes: Mapping[str, int]
    """Number of moves by outcome."""
    left_out: Mapping[str, int]
    """Number of files that are not moved, by reason."""
    sentence: str


class StagingsAnswer(Struct, frozen=True):
    """Stagings of a job, or the last ones of all jobs."""

    stagings: tuple[StagingAnswer, ...] = ()
    held: str = ""
    """Why tierd accepts no staging at present; empty if it does."""


class PrepareAnswer(Struct, frozen=True):
    """What is prepared for a job that is about to start."""

    ready: tuple[str, ...]
    """Directories that have the layout which helped before."""
    waiting: tuple[str, ...]
    """Directories that are about to get it."""
    why_not: tuple[str, ...]
    """Why other directories do not, or why nothing is done."""


class JobSummaryAnswer(Struct, frozen=True):
    """What tierd did for a job, in words; empty if it did nothing."""

    sentences: tuple[str, ...]


class Undone(ChangeAnswer, frozen=True):
    """``tierctl undo``."""

    result: str

    @property
    def succeeded(self) -> bool:
        return self.result in {Outcome.UNDONE, Outcome.UNDOING}


class UndoAnswer(Undone, frozen=True):
    """``tierctl undo`` of one act."""

    detail: str
    entry: ActAnswer

    @property
    def lines(self) -> list[str]:
        return [f"{self.result}: {self.entry.kind} of {quoted(self.entry.place)}: {self.detail}"]


class UndoFindingAnswer(Undone, frozen=True):
    """``tierctl undo`` of all that was done about a finding."""

    finding: int
    dropped_moves: int
    acts: tuple[UndoAnswer, ...]
    moved_files: tuple[int, ...]
    """Numbers of the acts that moved files, which stay."""
    kind: str = ""
    """Of the finding or order."""

    @property
    def lines(self) -> list[str]:
        dropped, moved = count_of(self.dropped_moves, "queued move"), self.moved_files
        restored = count_of(len(self.acts), "directory default")
        lines = [f"{name_of(self.finding, self.kind)}: {dropped} dropped, {restored} to restore"]
        lines += [f"  {line}" for act in self.acts for line in act.lines]
        if moved:
            lines.append(f"{count_of(len(moved), 'moved file')} left in place (acts {moved[0]} to {moved[-1]}); "
                         "tierctl undo ID moves one back, tierctl demote PATH all files below a directory")
        return lines


class DecisionAnswer(ChangeAnswer, frozen=True):
    """``tierctl apply`` and ``tierctl decline``."""

    finding: int
    becomes: str
    """What becomes of the plan."""
    dry_run: bool

    @property
    def lines(self) -> list[str]:
        dry = "; dry run: nothing is changed" if self.dry_run else ""
        return [f"F{self.finding}: its plan is {self.becomes}{dry} (tierctl explain F{self.finding})"]


def undo_from_json(data: Json) -> Undone:
    """The answer to an undo. Raises ValueError."""
    return UndoAnswer.from_json(data) if "entry" in data else UndoFindingAnswer.from_json(data)


class MoverAnswer(Struct, frozen=True, kw_only=True):
    """A mover on another node."""

    name: str
    host: str
    engine: str
    threads: int
    seen: float
    stopped: str = ""
    """Why it begins no file; "" while it works."""
    under_way: int
    results: Mapping[str, int]
    copied_bytes: int


class StandbyRow(Struct, frozen=True, kw_only=True):
    """A standby of the leader."""

    name: str
    host: str
    behind_messages: int | None = None
    """Messages of the journal that its copy lacks; None if unknown."""
    copy_age_seconds: float | None = None
    """Time since its copy was complete; None if it never was."""
    problem: str = ""
    """Why it could not lead; "" if it could."""


class StandbyAnswer(Struct, frozen=True, kw_only=True):
    """``tierctl status`` of a tierd that stands by."""

    standing_by: bool = True
    """True, which tells this answer from that of a leader."""
    time: float
    fs: str
    name: str
    leader: str
    """Who leads, in words; "" if nobody does."""
    generation: int
    """Generation of the leader's claim; 0 without a leader."""
    position: int
    """Sequence of the last message of the journal's stream that the copy contains."""
    behind_messages: int | None = None
    copy_age_seconds: float | None = None
    faults: Mapping[str, str] = {}
    """Why it could not lead, by what fails."""


class MoversAnswer(Struct, frozen=True, kw_only=True):
    """``tierctl movers``."""

    time: float
    cluster: bool
    """False if this tierd moves files in its own process."""
    trouble: str = ""
    """Why there is no connection to NATS."""
    under_way: Mapping[str, int] = {}
    """Files without a result, by source target."""
    oldest_seconds: float = 0.0
    journal_lag: int = 0
    movers: tuple[MoverAnswer, ...] = ()
    standbys: tuple[StandbyRow, ...] = ()


class ReportAnswer(Struct, frozen=True, kw_only=True):
    """``tierctl report``."""

    since: float
    until: float
    mount: str
    all_acts: int
    files_moved: int
    bytes_moved: int
    outcomes: Mapping[str, int]
    kinds: Mapping[str, int]
    """Number of findings by kind."""
    verdicts: Mapping[str, int]
    recorded_since: float | None = None
    """When the first record of the period begins; None without any."""
    cases: tuple[Case, ...]
    """Findings and orders of the period, without curves."""
    status: StatusAnswer
    users: Mapping[str, str] = {}
