"""A default striping over MDTs for the directories that a job will make beside one with very many operations.

It moves nothing: existing entries and directories stay on their MDT, and only directories that are made later in the
same parent are striped. They do not pass it on (``max_inherit``), because many striped directories cost requests. So
tierd does it only where several directories of the parent are used alike, as by a job that makes one for each step, and
where several nodes work in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le, Lt

from lustre.layout.directory import DefaultStriping, setdirstripe_arguments
from lustre.layout.model import Component, Layout
from tierd.acts import ActKind
from tierd.decide.plans import Plan
from tierd.model import Action, Capacity, Finding, MetadataStormEvidence
from tierd.refusal import Reason, Refusal
from tierd.text import percent, quoted

NO_LAYOUT = Layout((Component(),), composite=False)
"""Stands in an act that changes no layout of files."""
CREATE_SHARE = 0.25
"""Share of creates in the operations, below which stripes bring little: opens share the lock of the directory."""


@dataclass(frozen=True)
class Settings:
    """Which default striping tierd sets, and how it is judged."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    max_stripes: Annotated[int, Ge(2), Le(64)] = 4
    """Maximum number of MDTs of a new subdirectory."""
    hash_type: Literal["crush", "fnv_1a_64"] = "crush"
    """``crush`` needs Lustre 2.14."""
    min_free: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Minimum free share of bytes and of inodes on every MDT."""
    judge_seconds: Annotated[float, Ge(660)] = 900.0
    """Time after the act at which its effect is measured; operations of a directory are counted over ten minutes."""
    min_gain: Annotated[float, Gt(0)] = 0.05
    """Minimum increase of the operations below the directory. tierd undoes an act with less."""
    gone_share: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Share of the earlier operations below which the jobs have stopped: then there is no verdict."""


def decide(finding: Finding, evidence: MetadataStormEvidence, capacity: Capacity, settings: Settings) -> Plan:
    """The default striping for the parent of a finding's directory, or why there is none."""
    parent = finding.subject.rpartition("/")[0] if finding.subject.startswith("/") else ""
    if (why := refusal(parent, finding, evidence, capacity, settings)) is not None:
        return Plan((), (why.about(quoted(parent or finding.subject)),))
    count = min(evidence.metadata_targets, settings.max_stripes)
    striping = DefaultStriping(count, -1, settings.hash_type, 1)
    return Plan((Action(
        ActKind.SET_DEFAULT_STRIPING, NO_LAYOUT,
        f"{evidence.operations_per_second:.0f} metadata operations/s in {quoted(finding.subject)} use one directory "
        "lock, and directories beside it are used alike", finding.key, parent, striping=striping),), ())


def refusal(parent: str, finding: Finding, evidence: MetadataStormEvidence, capacity: Capacity,
            settings: Settings) -> Refusal | None:
    """Refuses a default striping that would bring nothing, or replace what a person has set."""
    storm, placement = capacity.placements.get(finding.subject), capacity.placements.get(parent)
    if not finding.subject.startswith("/"):
        return Refusal(Reason.NO_PATH, "its path is unknown")
    if not parent:
        return Refusal(Reason.ROOT_DIRECTORY, "the default of the root directory is for the whole file system")
    if evidence.metadata_targets < 2:
        return Refusal(Reason.NOTHING_TO_DO, "the file system has one MDT, or their number is unknown")
    if storm is None or placement is None:
        return Refusal(Reason.NO_LAYOUT, "its stripes over MDTs cannot be read")
    if storm.stripes.stripe_count >= evidence.metadata_targets:
        return Refusal(Reason.OTHER_LAYOUT, "the busy directory uses all MDTs already")
    if placement.default is not None and not placement.default.is_usual:
        return Refusal(Reason.OTHER_LAYOUT, own_default(placement.default))
    if placement.stripes.is_changing or storm.stripes.is_changing:
        return Refusal(Reason.OTHER_MOVER, "it is being migrated or split")
    if (useless := without_gain(finding, evidence)) is not None:
        return useless
    if len(capacity.metadata_fill) < evidence.metadata_targets:
        return Refusal(Reason.NO_ROOM, "the space of an MDT is unknown")
    fullest = max(capacity.metadata_fill.values(), key=lambda fill: fill.used_share)
    if fullest.used_share > 1 - settings.min_free:
        return Refusal(Reason.NO_ROOM, f"an MDT is {percent(fullest.used_share)} full")
    return None


def own_default(default: DefaultStriping) -> str:
    """Why tierd does not replace a default striping, and how a person can remove it."""
    return (f"it has a default striping of its own ({' '.join(setdirstripe_arguments(default))}), which 'lfs mkdir' "
            "sets too; 'lfs setdirstripe -D -d' removes it")


def without_gain(finding: Finding, evidence: MetadataStormEvidence) -> Refusal | None:
    """Refuses a default striping from which the jobs of a storm gain nothing, as far as their use shows."""
    if evidence.nodes == 0:
        return Refusal(Reason.NODES_UNKNOWN, "the number of nodes that work in the busy directory is unknown, and one "
                       "node gains nothing from more MDTs")
    if evidence.nodes == 1:
        return Refusal(Reason.NOT_WORTH, "one node works in the busy directory: its kernel makes one name at a time "
                       "there, so more MDTs bring nothing")
    if len(finding.directories) < 2:
        return Refusal(Reason.NOT_WORTH, "no other directory in it is used alike, so no new ones are expected")
    if evidence.creates_per_second < CREATE_SHARE * evidence.operations_per_second:
        return Refusal(Reason.NOT_WORTH, "few of the operations are creates, and opens share the directory lock")
    return None
