"""What a policy is: one kind of finding with all that tierd knows about it.

A policy is a table of pure functions: they use only what they are given and keep no state. The engine, the daemon, the
journal and the pages read this table and never the kind of a finding. A policy without ``plan`` only advises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from lustre.fid import Fid
from lustre.layout.model import Layout
from tierd.decide import benefit, plans
from tierd.decide.plans import FlashSettings, Plan
from tierd.decide.sizing import Size
from tierd.detect.view import SlowdownSettings, SlowdownView, View
from tierd.model import Action, Advice, Capacity, DirectoryActivity, Evidence, Facts, Finding, StoredFile, Table, Window
from tierd.refusal import Refusal
from tierd.validators import Switch, T
from tierd.verify.judgement import Judgement
from tierd.verify.judgement import Settings as VerifySettings


class JudgedBy(Enum):
    """What shows whether the acts of a policy helped."""

    VICTIM = auto()
    """The throughput of the job that the finding says is slowed."""
    ITSELF = auto()
    """The rate of the job whose files are moved: there is no victim."""
    CAUSE = auto()
    """Nothing is measured for a job: the case closes when its finding ends."""


LEAVE = 2 / 3
"""A finding ends at this share of the threshold at which it begins, so that it does not flicker. A choice."""


def edge(enter: float, view: View, kind: str, job: str, subject: str = "") -> float:
    """The threshold of a finding with these words in its key: a lower one while it holds."""
    return enter * LEAVE if (kind, job, subject) in view.active else enter


@dataclass(frozen=True)
class Common(Table):
    """Settings of the table ``[detect.NAME]`` of every policy."""

    enabled: Switch = True


@dataclass(frozen=True)
class Tables:
    """Settings of acts, by the names of their tables."""

    by_name: Mapping[str, Any] = field(default_factory=dict)

    def of(self, table: type[T]) -> T:
        """The table of this type, with its defaults if the configuration has none."""
        return next((each for each in self.by_name.values() if isinstance(each, table)), table())


@dataclass(frozen=True, slots=True)
class Use:
    """How the files of a directory are used."""

    read_share: float
    """Reads among the job's reads and writes."""
    growth_bytes_per_second: float = 0.0
    files_per_second: float = 0.0
    """New files that stay."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The layout for the small files of a directory, and why."""

    layout: Layout
    reason: str = ""
    """Why the data is on flash, or elsewhere; "" if there is no choice."""
    refused: Refusal | None = None
    """Why the data is not elsewhere although that is expected to be better."""
    room_bytes: float = 0.0
    """Bytes of existing files that fit there, if it is not flash."""

    @property
    def on_mdt(self) -> bool:
        return self.layout.components[0].on_mdt


@dataclass(frozen=True, slots=True)
class Situation:
    """What a plan is made of, besides the finding."""

    capacity: Capacity
    pools: FlashSettings
    """Pools and limits: of the scope of the activities, or of the whole file system."""
    activities: Sequence[DirectoryActivity] = ()
    """Activity of the aggressor in the directories of the finding, in one scope."""
    tables: Tables = field(default_factory=Tables)
    benefit: benefit.Settings = field(default_factory=benefit.Settings)
    places: Sequence[Place] = ()
    """What other policies offer for small files instead of flash, as far as ``[act] on`` allows it."""
    facts: Facts = field(default_factory=Facts)
    victim_slowed: bool = False
    """A job is slowed on the finding's targets."""
    pools_of: Callable[[str], FlashSettings] = lambda _: FlashSettings()
    """Pools and limits of a path."""
    was_tried: Callable[[Fid, float, float], bool] = lambda *_: False
    """Whether a file was moved since one time, or tried since another."""
    draining: Collection[str] = ()
    """Targets that are being emptied."""
    mirrored: Callable[[Layout, Use], Layout] = lambda layout, _: layout
    """The layout for moves of files with this use: a mirror to be added if ``[act] on`` allows it, or the given one."""
    unmirrored: Callable[[StoredFile, str], Layout | None] = lambda *_: None
    """The layout of a file without its mirror on a flash pool; None if it has none, or if mirrors are not allowed."""
    made_mirrors: Callable[[Fid, Layout], bool] = lambda *_: False
    """Whether tierd gave a file the mirrors of its layout."""

    def placed(self, on_flash: Layout, use: Use, *, flash_has_room: bool = True) -> Choice:
        """The best layout for small files: the given one, with its first component on flash, or one of ``places``."""
        choices = [place(on_flash, use, self, flash_has_room) for place in self.places]
        return next((choice for choice in choices if choice.layout != on_flash), [*choices, Choice(on_flash)][0])

    def layout_for_small_files(self, finding: Finding, activity: DirectoryActivity, size: Size, use: Use, *, why: str,
                               full: Refusal | None, room: dict[bool, float]) -> tuple[
                                   Layout | None, Sequence[Action | Refusal]]:
        """The layout for small files of a directory, and the act that sets it for new ones, or refusals.

        Its first component is on flash, or in one of ``places``; None if none has room. ``room`` gets that of MDTs.
        """
        where, pools = activity.directory, self.pools
        present = self.capacity.default_layouts.get(where)
        on_flash = plans.flash_first(size.component_bytes, present, pools)
        choice = self.placed(on_flash, use, flash_has_room=full is None)
        if full and not choice.on_mdt:
            return None, tuple(each.about(where) for each in (full, choice.refused) if each)
        if choice.on_mdt:
            room.setdefault(True, choice.room_bytes)
        stays = (activity.creates <= activity.creates_before or plans.default_refusal(where, self.capacity)
                 or plans.covers(present, size.component_bytes, pools.flash_pool))
        reasons = "; ".join(filter(None, (why, size.reason, choice.reason)))
        new = () if stays else (plans.new_default(finding, where, choice.layout, reasons),)
        return choice.layout, new

    def without_mirror(self, file: StoredFile, flash_pool: str) -> Layout | None:
        """The layout of a file without the mirror on flash that tierd gave it; None if it has none."""
        made = file.layout is not None and file.layout.mirror_count > 1 and self.made_mirrors(file.fid, file.layout)
        return self.unmirrored(file, flash_pool) if made else None


Place = Callable[[Layout, Use, Situation, bool], Choice]
"""Chooses between a layout with its first component on flash and another one. The last argument: flash has room."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk of directories that looks for files on the fuller targets of unevenly filled pools."""

    directories: Sequence[str]
    files_per_second: float
    min_bytes: int


@dataclass(frozen=True, slots=True)
class MoveRun:
    """A run of moves without a long pause, to be judged."""

    begun_at: float
    case_begun_at: float
    last_at: float
    moving: bool
    """Whether moves wait, or were made just now."""
    moved: Callable[[], tuple[int, int]]
    """Number of files that were moved for the case, and their bytes."""
    facts: Facts
    windows: Sequence[Window]
    now: float
    settings: VerifySettings


@dataclass(frozen=True)
class Policy:
    """One kind of finding, with all that tierd knows about it. Only ``name`` is needed."""

    name: str
    """Kind of the findings: lowercase words with hyphens; an id in the journal. The settings of ``hot-small-files`` are
    in ``[detect.hot_small_files]``."""
    settings: type[Common] = Common
    find: Callable[[View, Any], Iterable[Finding]] | None = None
    """Findings by the view of the last half minute and the settings, each problem once."""
    find_slowed: Callable[[SlowdownView, SlowdownSettings], Iterable[Finding]] | None = None
    """Findings about slowed streams, in every cycle, by the model of interference and ``[noisy_neighbour]``."""
    evidence: type[Evidence] = Evidence
    """Type of the numbers that the functions below read, even after they were stored in the journal."""

    plan: Callable[[Finding, Any, Situation], Plan] | None = None
    """What to do, by the finding, its evidence and the situation. ``[act] on`` may then name the policy."""
    tables: Mapping[str, type] = field(default_factory=dict)
    """Further tables of settings for the plan, by name."""
    by_scope: bool = True
    """Whether there is one plan for each scope, none if no changelog shows where the aggressor works. Otherwise one
    plan is made for the whole file system."""
    on_by_default: bool = False
    """Whether the default of ``[act] on`` names it."""
    option: str = ""
    """What an entry in ``[act] on`` allows other policies to do: ``places small files on the MDT``."""
    place: Place | None = None
    mirrored: Callable[[Layout, Use], Layout] | None = None
    unmirrored: Callable[[StoredFile, str], Layout | None] | None = None

    judged_by: JudgedBy = JudgedBy.CAUSE
    needs_its_job: bool = False
    """Whether moves pay off only while the aggressor is at work: they gather the files that it reads."""
    waits_for_close: bool = False
    """Whether its files are open while the finding begins, so that it is planned again until they are closed."""
    restores_layouts: bool = False
    """Whether moved files get their earlier layout where the acts did not help: the new one would slow each use."""
    can_wait: bool = False
    """Whether its moves give way to streams: no job is slow because of the finding."""
    judge_moves: Callable[[Finding, Any, MoveRun], Judgement | None] | None = None
    """Judges moves by what they change, and not by the rate of one job; None while it is too early. Such moves are
    stopped, and not undone."""
    judge_default: Callable[[str, Any, Facts, float], Judgement | None] | None = None
    """Judges a default striping by its directory, the evidence, and the seconds since; None while it is too early."""
    why_advice: Callable[[Finding], Refusal] | None = None
    """Why a finding that names a victim is advice only."""

    directories: Callable[[Tables], Collection[str]] | None = None
    """Further directories whose files on flash the scan examines."""
    walk: Callable[[Tables], Walk | None] | None = None
    """Directories to walk if ``[act] on`` names the policy."""
    busy_directory: Callable[[Any], float] | None = None
    """Operations per second in a directory, by the settings, from which the policy needs the MDTs of the directory."""
    is_short: Callable[[Layout, Capacity, Tables], str | None] | None = None
    """For a default layout that the policy answers for: why no more files may go there, or "". None for others."""

    def finding(self, view: View, sentence: str, evidence: Evidence | Mapping[str, float], *, job: str = "",
                targets: Iterable[str] = (), directories: tuple[str, ...] = (), subject: str = "",
                advice: Iterable[Advice] = (), advice_only: bool = True) -> Finding:
        """A present finding of this policy; by default, advice only."""
        return Finding(self.name, view.now, job, "", tuple(targets), sentence, evidence,  # type: ignore[arg-type]
                       directories, advice_only, subject=subject, advice=tuple(advice))

    @property
    def table(self) -> str:
        """Name of its table below ``[detect]``."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class ConfiguredPolicy:
    """A policy with its settings."""

    policy: Policy
    settings: Common
