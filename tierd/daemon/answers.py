"""The answers of the control socket: frozen dataclasses, and their form in JSON.

:func:`to_json` and :func:`from_json` are the only code that knows the JSON. A key is the name of the field, or the name
in the field's metadata. ``from_json`` ignores unknown keys, so tierctl works with daemons of later releases, and takes
defaults for missing ones, so it works with earlier daemons.

The module imports the standard library and rows of the journal only: ``tierctl status`` must start quickly on a loaded
node.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import ClassVar, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tierd.journal_rows import FindingRow, JudgementRow, MessageRow, SameFindingRow

Json = Mapping[str, object]
"""A JSON object."""


class Answer(Protocol):
    """Any of the dataclasses below."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


T = TypeVar("T", bound=Answer)
_OMIT = {"omit": True}
"""Of fields that are left out of the JSON where they have their default."""


def to_json(answer: Answer) -> dict[str, object]:
    """The JSON object of an answer, for :func:`json.dumps`."""
    return {_key(each): _plain(value) for each in fields(answer)
            if (value := getattr(answer, each.name)) != each.default or "omit" not in each.metadata}


def from_json(cls: type[T], data: object) -> T:
    """The answer in a JSON object. Raises ValueError for what is no such answer."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{cls.__name__}: no JSON object")
    found: dict[str, object] = {}
    for each, kind in _typed_fields(cls):
        if _key(each) in data:
            found[each.name] = _read(kind, data[_key(each)])
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{cls.__name__}: {_key(each)} is missing")
    return cls(**found)


def _key(of: Field[object]) -> str:
    return str(of.metadata.get("json", of.name))


@cache
def _typed_fields(cls: type[Answer]) -> tuple[tuple[Field[object], object], ...]:
    hints = get_type_hints(cls)
    return tuple((each, hints[each.name]) for each in fields(cls))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(cast(Answer, value))
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _read(kind: object, value: object) -> object:
    """A value of a type: scalars as they are, containers and dataclasses by their parts."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return None if value is None else _read(next(part for part in parts if part is not types.NoneType), value)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"a list is expected, not {value!r:.60}")
        if parts[-1] is Ellipsis:
            return tuple(_read(parts[0], one) for one in value)
        return tuple(_read(part, one) for part, one in zip(parts, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError(f"an object is expected, not {value!r:.60}")
        return {str(key): _read(parts[1], one) for key, one in value.items()}
    return from_json(kind, value) if is_dataclass(kind) and isinstance(kind, type) else value


# Parts of answers


@dataclass(frozen=True, slots=True)
class RefusalAnswer:
    """Why something is not done, and what would change that."""

    reason: str
    sentence: str
    remedy: str
    """Empty where nothing would."""


@dataclass(frozen=True, slots=True)
class AdviceAnswer:
    """What an administrator may change, where, and the expected effect."""

    command: str
    where: str
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingAnswer:
    """A finding that holds."""

    id: int | None = field(default=None, metadata=_OMIT)
    """Number in the journal."""
    kind: str
    time: float = field(metadata={"json": "t"})
    """Epoch seconds."""
    aggressor: str
    victim: str
    targets: tuple[str, ...]
    directories: tuple[str, ...]
    advice_only: bool
    subject: str
    advice: tuple[AdviceAnswer, ...]
    evidence: Mapping[str, float | str]
    """The numbers, and the sentence about them."""

    @property
    def sentence(self) -> str:
        """The finding in words."""
        return str(self.evidence.get("sentence", ""))

    @property
    def numbers(self) -> dict[str, float]:
        """The evidence without its sentence."""
        return {name: float(value) for name, value in self.evidence.items() if name != "sentence"}


@dataclass(frozen=True, slots=True)
class ComponentAnswer:
    """A component of a layout; extents in bytes."""

    extent_start: int
    extent_end: int | None
    pool: str
    stripe_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionAnswer:
    """A planned act."""

    action: str
    """Its kind."""
    path: str = field(default="", metadata=_OMIT)
    directory: str = field(default="", metadata=_OMIT)
    layout: str
    """Arguments of ``lfs setstripe`` and ``lfs migrate``."""
    components: tuple[ComponentAnswer, ...]
    reason: str
    size_bytes: int = field(default=0)


@dataclass(frozen=True, slots=True)
class ActAnswer:
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


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A source of counters or records."""

    name: str
    age_seconds: float | None
    """None before the first data."""
    limit_seconds: float
    stale: bool
    state: str


@dataclass(frozen=True, slots=True)
class ActivityAnswer:
    """An activity of the daemon."""

    name: str
    doing: str
    last_seconds: float
    waits_for: str
    under_way_seconds: float
    """Duration of the current step so far; 0 between two steps."""


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """Throughput of a victim as measured for a verdict; bytes per second."""

    usual: float
    """Without the aggressor."""
    contended: float
    """Before the acts."""
    after: float
    """After the acts; 0 if it could not be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationAnswer:
    """What is done about a finding."""

    finding: int
    aggressor: str
    victim: str
    since: float
    state: str = ""
    """See :class:`tierd.daemon.states.State`; empty in answers of daemons before it."""
    judged: bool
    verdict: str
    directories: tuple[str, ...]
    waiting_defaults: int
    waiting_moves: int
    moves_held: bool
    undo_reason: str = field(default="", metadata={"json": "taking_back"})
    measured: MeasuredAnswer | None = field(default=None, metadata=_OMIT)
    """The measurement behind the verdict."""
    measured_text: str = field(default="", metadata=_OMIT)
    """The verdict and what it rests on, where that is no rate: of a rebalance."""
    subject: str = field(default="", metadata=_OMIT)
    """Subject of a finding that is not about two jobs."""


@dataclass(frozen=True, slots=True)
class ScopeAnswer:
    """A directory with its own mode."""

    path: str
    mode: str


@dataclass(frozen=True, slots=True)
class JobTimeRow:
    """Part of a target's service time that a job takes, and its standard error."""

    job: str
    share: float
    error: float


@dataclass(frozen=True, slots=True)
class TargetTimeRow:
    """Share of the time in which a target is busy, its standard error, and the jobs that take most of it."""

    target: str
    utilisation: float
    utilisation_error: float
    jobs: tuple[JobTimeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """A finding, and what is done about it. Rates in bytes per second, times in epoch seconds; None: not known."""

    finding: int | None
    kind: str
    sentence: str
    aggressor: str
    victim: str
    subject: str
    active: bool
    """Whether the finding holds."""
    since: float
    onset: float | None
    """When the aggressor came; None if it was active before tierd started, and for findings without a victim."""
    targets: tuple[str, ...]
    directories: tuple[str, ...]
    state: str
    """See :class:`tierd.daemon.states.State`; empty without a remediation."""
    verdict: str
    judged: bool
    undo_reason: str
    why_not: tuple[RefusalAnswer, ...]
    """Why not more is done while the finding holds."""
    usual: float | None
    """Rate of the victim without the aggressor."""
    contended: float | None
    """When it was found."""
    now: float | None
    """In the last seconds; None without a curve."""
    after: float | None
    """As measured for the verdict."""
    acted_at: float | None
    """When the first default layout was set, or the first file was moved."""
    judged_at: float | None
    defaults: tuple[DefaultLayoutRow, ...]
    """Default layouts in force."""
    waiting_defaults: int
    moves: int
    """Moves that were queued since the case began."""
    waiting_moves: int
    moves_held: bool
    curve: tuple[tuple[float, float], ...]
    """Time and rate of the victim in each window."""
    time_before: TargetTimeRow | None
    """Device time of the targets by job, before the first act; None if it is not known or nothing was done."""
    time_now: TargetTimeRow | None
    measured_text: str = field(default="", metadata=_OMIT)
    """The verdict and what it rests on, where that is no rate: of a rebalance."""
    ended_at: float | None = None
    """When the finding ended; None while it holds."""


@dataclass(frozen=True, slots=True)
class DefaultLayoutRow:
    """A default layout that a case has set."""

    act: int
    directory: str
    layout: str
    """In words."""


@dataclass(frozen=True, slots=True)
class PoolRow:
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


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """Acts that were not carried out for the same reason."""

    outcome: str
    reason: str
    """Figures in it are replaced by ``#``."""
    count: int


# Answers


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A request that failed. ``again``: the same request may succeed later."""

    error: str
    again: bool = field(default=False, metadata=_OMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingStateAnswer:
    """What holds acts back, in words, and the queue. Empty words: nothing does."""

    paused: str
    held: str
    draining: str
    waiting_moves: int
    waiting_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAnswer(OperatingStateAnswer):
    """The state of the daemon: what ``tierctl status`` and ``tierctl top`` share."""

    time: float
    mode: str
    scopes: tuple[ScopeAnswer, ...]
    dry_run: bool
    faults: Mapping[str, str]
    """What cannot be observed, by source."""
    finding_ids: tuple[int | None, ...]
    why_not: tuple[tuple[RefusalAnswer, ...], ...]
    """Why not more is done, for each finding that is acted on."""
    advice: int
    """Number of findings that are advice."""
    last_cycle: float | None
    windows: int
    least_windows: int
    looking_since: float | None
    history_seconds: float
    least_seconds: float
    learning: bool = False
    """Whether too little is known to conclude that no stream is slowed."""
    device_time: tuple[TargetTimeRow, ...] = ()
    """The busiest targets."""
    cycles: int
    cycle_seconds: float
    waiting_orders: int
    under_way_moves: int
    waiting_defaults: int
    waits_for: str
    """The limit that the first queued move waits for."""
    moves_to_requeue: int = field(default=0, metadata={"json": "left_over_moves"})
    """Moves of before a restart that were not examined yet."""
    moves_not_persisted: int = field(default=0, metadata={"json": "not_kept_moves"})
    """Moves that a restart would lose."""
    not_requeued: Mapping[str, int] = field(default_factory=dict, metadata={"json": "not_taken_up"})
    """Moves of before a restart that were dropped, by reason."""
    moved_bytes: int
    outcomes: Mapping[str, int]
    """Number of acts by kind and outcome, as ``"migrate done"``."""
    needless_moves: int = 0
    """Queued moves that needed no act: the file was gone, or as wanted."""
    remediations: tuple[RemediationAnswer, ...] = field(default=(), metadata={"json": "cases"})
    activities: tuple[ActivityAnswer, ...] = ()
    stalled: tuple[str, ...] = ()
    sources: tuple[SourceAnswer, ...] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    """Users of the jobs of findings and cases, as far as their job ids name them: ``alice (1002)`` or ``1002``.

    ``tierctl top`` has those of its jobs as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer(StateAnswer):
    """``tierctl status``."""

    findings: tuple[str, ...]
    """Sentences of the findings that are acted on, in the order of ``finding_ids``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAnswer:
    """The part of ``tierctl status`` that ``--wait`` needs."""

    held: str
    waiting_moves: int
    waiting_orders: int
    under_way_moves: int
    outcomes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MdtReaderRow:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderRow:
    """A changelog reader, as it described itself."""

    name: str
    host: str
    started: float
    mdts: tuple[str, ...]
    records: int
    """Records since its start."""
    waiting: int
    """Tallies that wait for tierd."""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadersAnswer:
    """``tierctl readers``."""

    enabled: bool
    """Whether tierd takes changelog records from readers."""
    mdts: tuple[MdtReaderRow, ...] = ()
    readers: tuple[ReaderRow, ...] = ()
    tallies: Mapping[str, int] = field(default_factory=dict)
    """Tallies since the start by outcome."""


@dataclass(frozen=True, slots=True)
class FaultsAnswer:
    """The part of ``tierctl status`` that the readiness check needs."""

    faults: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRow:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """Load of a job; bytes, operations and creates per second."""

    job: str
    read_bytes: float
    write_bytes: float
    operations: float
    creates: float
    targets: int
    role: str
    """``noise``, ``slowed`` or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopAnswer(StateAnswer):
    """``tierctl top``."""

    findings: tuple[FindingAnswer, ...]
    seconds: float
    """Length of the window. 0 before the first."""
    targets: tuple[TargetRow, ...]
    all_targets: int
    jobs: tuple[JobRow, ...]
    all_jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewAnswer:
    """The page of tierd."""

    fsname: str
    mount: str
    version: str
    options: str
    """Options with which tierctl finds this tierd: `` --fs scratch``; empty if it needs none."""
    status: StatusAnswer
    cases: tuple[CaseAnswer, ...]
    all_cases: int
    advice: tuple[FindingAnswer, ...]
    all_advice: int
    seconds: float
    """Length of the window. 0 before the first."""
    targets: tuple[TargetRow, ...]
    all_targets: int
    device_time: tuple[TargetTimeRow, ...]
    """Of ``targets``, as far as it is known."""
    jobs: tuple[JobRow, ...]
    all_jobs: int
    users: Mapping[str, str]
    """Users of the jobs in this answer, as in :class:`StateAnswer`."""
    pools: tuple[PoolRow, ...]
    reasons: tuple[ReasonRow, ...]


@dataclass(frozen=True, slots=True)
class FindingsAnswer:
    """``tierctl findings`` and ``tierctl advise``."""

    findings: tuple[FindingAnswer, ...]
    looked: bool
    """Whether two readings were compared."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Users of the jobs in this answer, as in :class:`StateAnswer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAnswer:
    """``tierctl history``."""

    entries: tuple[ActAnswer, ...]
    all_outcomes: Mapping[str, int] = field(default_factory=dict)
    """Number of acts by outcome, where ``entries`` is empty."""
    complete_since: float | None = None
    removed_acts: int = 0


@dataclass(frozen=True, slots=True)
class OutcomeAnswer:
    """The verdict on what was done about a planned finding before."""

    name: str
    judged: bool


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """What was done about a finding before."""

    since: float
    outcome: OutcomeAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnswer:
    """What would be done about a finding."""

    finding: FindingAnswer
    actions: tuple[ActionAnswer, ...]
    recommended: tuple[ActionAnswer, ...]
    """Acts that the mode excludes."""
    refusals: tuple[str, ...]
    earlier: EarlierAnswer | None = field(default=None, metadata={"json": "case"})


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """``tierctl plan``."""

    plans: tuple[PlannedAnswer, ...]
    status: StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAnswer:
    """``tierctl explain``."""

    finding: FindingRow
    holds: bool
    ordered: bool
    """Whether it is an order and no finding."""
    advice: tuple[AdviceAnswer, ...]
    acts: tuple[ActAnswer, ...]
    all_acts: int
    files_moved: int
    bytes_moved: int
    outcomes: Mapping[str, int]
    messages: tuple[MessageRow, ...] = field(metadata={"json": "told"})
    judgements: tuple[JudgementRow, ...]
    same: tuple[SameFindingRow, ...]
    users: Mapping[str, str] = field(default_factory=dict)
    """Users of the jobs in this answer, as in :class:`StateAnswer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAnswer:
    """``tierctl promote`` and ``tierctl demote``."""

    path: str
    direction: str
    files: int
    size_bytes: int
    left_out: Mapping[str, int]
    """Number of files by reason."""
    dry_run: bool
    preview: bool
    held: str
    actions: tuple[ActionAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftRow:
    """Files that stay on a drained target for one reason."""

    sentence: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRow:
    """A drain of one OST."""

    target: str
    by: str
    finding: int
    phase: str
    preview: bool
    begun_at: float
    passes: int
    position: str
    """Last directory whose files are all dealt with in this pass."""
    examined: int
    found_files: int
    found_bytes: int
    arrived: int
    """Files of this pass that no earlier pass has found."""
    queued_moves: int
    files_moved: int
    used_bytes: int | None
    """None if the target cannot be reached."""
    used_bytes_at_begin: int
    seconds_left: float | None
    """At the rate since the beginning; None if there is none."""
    left: tuple[LeftRow, ...]
    stopped_mdts: tuple[str, ...]
    """MDTs for which tierd stopped new objects."""
    stop_command: str
    """The command that stops new objects, where tierd cannot; "" if they are stopped."""
    give_back_command: str
    trouble: str = ""
    waits_for: str = field(default="", metadata=_OMIT)
    """What delays its moves: streams at work, or a limit; "" for nothing."""


@dataclass(frozen=True, slots=True)
class DrainsAnswer:
    """``tierctl drain-target``."""

    time: float
    drains: tuple[DrainRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlanAnswer:
    """What ``tierctl drain-target`` asks about before it begins."""

    target: str
    used_bytes: int
    pools: Mapping[str, tuple[str, ...]]
    """Targets that its files may move to, by pool."""
    bytes_per_second: float
    """Limit of all moves."""
    stopped_by_tierd: tuple[str, ...]
    """MDTs for which tierd stops new objects itself."""
    stop_command: str
    """The command that stops new objects on the other MDTs; "" if they are stopped."""
    dry_run: bool
    """Whether files would only be counted."""
    held: str
    """Why no moves would begin now; "" if they would."""


@dataclass(frozen=True, slots=True)
class SubmitAnswer:
    """``tierctl submit``."""

    accepted: int
    waiting_orders: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingAnswer:
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


@dataclass(frozen=True, slots=True)
class StagingsAnswer:
    """Stagings of a job, or the last ones of all jobs."""

    stagings: tuple[StagingAnswer, ...] = ()
    held: str = ""
    """Why tierd accepts no staging at present; empty if it does."""


@dataclass(frozen=True, slots=True)
class PrepareAnswer:
    """What is prepared for a job that is about to start."""

    ready: tuple[str, ...]
    """Directories that have the layout which helped before."""
    waiting: tuple[str, ...]
    """Directories that are about to get it."""
    why_not: tuple[str, ...]
    """Why other directories do not, or why nothing is done."""


@dataclass(frozen=True, slots=True)
class JobSummaryAnswer:
    """What tierd did for a job, in words; empty if it did nothing."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UndoAnswer:
    """``tierctl undo`` of one act."""

    result: str
    detail: str
    entry: ActAnswer


@dataclass(frozen=True, slots=True)
class UndoFindingAnswer:
    """``tierctl undo`` of all that was done about a finding."""

    result: str
    finding: int
    dropped_moves: int
    acts: tuple[UndoAnswer, ...]
    moved_files: tuple[int, ...]
    """Numbers of the acts that moved files, which stay."""


def undo_from_json(data: Json) -> UndoAnswer | UndoFindingAnswer:
    """The answer to an undo. Raises ValueError."""
    return from_json(UndoAnswer, data) if "entry" in data else from_json(UndoFindingAnswer, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoverAnswer:
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
    redelivered: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyRow:
    """A standby of the leader."""

    name: str
    host: str
    behind_messages: int | None = None
    """Messages of the journal that its copy lacks; None if unknown."""
    copy_age_seconds: float | None = None
    """Time since its copy was complete; None if it never was."""
    problem: str = ""
    """Why it could not lead; "" if it could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyAnswer:
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
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why it could not lead, by what fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoversAnswer:
    """``tierctl movers``."""

    time: float
    cluster: bool
    """False if this tierd moves files in its own process."""
    trouble: str = ""
    """Why there is no connection to NATS."""
    under_way: Mapping[str, int] = field(default_factory=dict)
    """Files without a result, by source target."""
    oldest_seconds: float = 0.0
    journal_lag: int = 0
    redelivered: int = 0
    stale: int = 0
    expired: int = 0
    movers: tuple[MoverAnswer, ...] = ()
    standbys: tuple[StandbyRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAnswer:
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
    complete_since: float | None = None
    removed_acts: int = 0
    findings: tuple[FindingRow, ...]
    acts: tuple[ActAnswer, ...]
    default_layouts: tuple[ActAnswer, ...]
    judgements: tuple[JudgementRow, ...]
    samples: Mapping[str, tuple[tuple[float, float], ...]]
    """Time and value of each point, by series."""
    status: StatusAnswer
    users: Mapping[str, str] = field(default_factory=dict)
    """Users of the jobs in this answer, as in :class:`StateAnswer`."""


def extend(cls: type[T], answer: Answer, **more: object) -> T:
    """An answer with the fields of another one and some more."""
    return cls(**{each.name: getattr(answer, each.name) for each in fields(answer)}, **more)
