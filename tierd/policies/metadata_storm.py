"""Very many creates, opens and unlinks in one directory, which one MDT and one directory lock must serve.

A striped directory spreads names over MDTs; tierd reads how many stripes the directory has. Data on the MDT (DoM) in
one shared directory of empty files gave 17% more creates and 36% more reads, and 22% fewer stats (Cray, CUG 2018). DoM
saves requests to object targets if files are tiny and are read more often than written.

The plan is a default striping over MDTs for the directories that a job will make beside one with very many operations.

It moves nothing: existing entries and directories stay on their MDT, and only directories that are made later in the
same parent are striped. They do not pass it on (``max_inherit``), because many striped directories cost requests. So
tierd does it only where several directories of the parent are used in the same way, as by a job that makes one for each
step, and where several nodes work in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt

from lustre.layout.directory import DefaultStriping, setdirstripe_arguments
from lustre.layout.model import Component, Layout
from tierd.acts import ActKind, Verdict
from tierd.decide.plans import Plan
from tierd.detect.groups import covering, grouped, totals
from tierd.detect.view import View
from tierd.model import MAX_CLIENTS, Action, Advice, DirectoryActivity, Evidence, Facts, Finding, Table
from tierd.policies.protocol import LEAVE, Common, Policy, Situation, edge
from tierd.refusal import Reason, Refusal
from tierd.text import first_names, percent, quoted
from tierd.verify.judgement import Judgement

NO_LAYOUT = Layout((Component(),), composite=False)
"""Stands in an act that changes no layout of files."""
DOM_BYTES = 64 << 10
"""Size of the advised component on the MDT."""
CHANGE_SHARE = 0.25
"""Share of creates, or of creates and unlinks, from which processes wait for the directory lock. Opens share it. A
choice."""
ALIKE, MAX_ALIKE = 0.2, 10
"""Creates in a directory beside the one of the finding, as a share of its creates, from which it counts as used in the
same way. Choices."""
SEVERAL_NODES = ("several nodes gain, if they wait for the MDT; one node gains nothing, because its kernel creates one "
                 "name at a time in a directory")
"""Which jobs a striped directory serves. The kernel locks a directory while it creates or removes a name in it."""
GAIN = ("in one shared directory, four MDTs did 1.95 times the creates of one MDT, 2.36 times the stats and 3.97 times "
        "the reads (Cray, CUG 2018); two did 1.37 times the creates, with a directory for each process (Dell, Intel)")
MOST = 0.9
"""Share of the operations whose jobs decide the number of nodes. A few operations of another job do not. A choice."""
CREATE_SHARE = 0.02
"""Creates per open of an existing file, below which a layout for new files changes nothing. A choice."""
JUDGE_SECONDS = 900.0
"""Time after the act at which its effect is measured; operations of a directory are counted over ten minutes."""
MIN_GAIN = 0.05
"""Minimum increase of the operations below the directory. tierd undoes an act with less. A choice."""
GONE_SHARE = 0.1
"""Share of the earlier operations below which the jobs have stopped: then there is no verdict. A choice."""


@dataclass(frozen=True)
class Settings(Common):
    """Thresholds."""

    enter: Annotated[float, Gt(0)] = 500.0
    """The finding begins at this rate of creates, opens and unlinks in one directory. A choice: an MDT of the recorded
    test bed does 840 creates/s."""
    share: Annotated[float, Gt(0), Lt(1)] = 0.3
    """Minimum share of the directory in all operations of the changelogs. A choice."""


@dataclass(frozen=True)
class DirectoryStriping(Table):
    """Which default striping tierd sets, and how it is judged: the table ``[directory_striping]``."""

    max_stripes: Annotated[int, Ge(2), Le(64)] = 4
    """Maximum number of MDTs of a new subdirectory. As in Cray's paper."""
    hash_type: Literal["fnv_1a_64", "crush"] = "fnv_1a_64"
    """``crush`` needs Lustre 2.14 on all clients: older ones create no files there."""
    min_free: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Minimum free share of bytes and of inodes on every MDT. A choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataStormEvidence(Evidence):
    """Metadata operations in one directory."""

    creates_per_second: float
    opens_per_second: float
    unlinks_per_second: float
    share: float
    """Share of the operations in all directories."""
    metadata_targets: int
    """0 if their number is not known."""
    stripes: int | None = None
    """Stripes of the directory over MDTs; 0 for one MDT; None if unknown."""
    unchanged_names: int = 0
    """Creates less unlinks while it was observed: names that were added. The directory has at least as many."""
    nodes: int = 0
    """Nodes of the jobs that do nearly all of it, or a lower bound of them; 0 if unknown."""
    parent_operations_per_second: float = 0.0
    """Operations in all directories below its parent, over ten minutes or, if that is more, half a minute: the jobs may
    have begun since. A default of the parent is judged by them."""

    @property
    def operations_per_second(self) -> float:
        return self.creates_per_second + self.opens_per_second + self.unlinks_per_second


def find(view: View, settings: Settings) -> Iterator[Finding]:
    facts, seconds = view.facts, view.facts.latest_seconds
    by_place = grouped((activity.directory, activity) for activity in facts.latest_directories)
    done = totals((activity.directory, operations(activity)) for activity in facts.latest_directories)
    everything, known = sum(done.values()), set[str]()
    for place in sorted(by_place, key=lambda each: (-done[each], each)):
        if (1 + MAX_ALIKE) * done[place] < max(settings.enter * LEAVE * seconds, settings.share * everything):
            return  # sorted: the directories after this one have fewer operations
        if place in known:
            continue
        own = by_place[place]
        alike = sorted(used_alike(place, own, view), key=lambda other: (-done[other], other))
        alike = alike[:MAX_ALIKE]  # those of the last half minute first
        parts = [*own, *(each for other in alike if work_together(own, by_place[other]) for each in by_place[other])]
        together = sum(map(operations, parts))
        subject = f"{parent_of(place)}/*" if alike else place
        least = max(edge(settings.enter, view, POLICY.name, "", subject) * seconds, settings.share * everything)
        if together >= least and subject not in known:
            known |= {*alike, subject}
            yield of_directory((place, *alike), subject, parts, together / everything, view)


def operations(activity: DirectoryActivity) -> int:
    """Metadata operations in a directory. Closes are left out, because each follows an open."""
    return activity.creates + activity.opens + activity.unlinks


def of_directory(places: Sequence[str], subject: str, parts: Sequence[DirectoryActivity], share: float,
                 view: View) -> Finding:
    """The finding about the first of these directories. The others are used in the same way, as by the steps of a job.

    ``parts`` are the operations in it, and in those of the others in which the same nodes work.
    """
    place, facts, seconds = places[0], view.facts, view.facts.latest_seconds
    jobs = list(dict.fromkeys(p.job for p in sorted(parts, key=lambda p: (-operations(p), p.job))))
    placement, parent = facts.placements.get(place), parent_of(place)
    stripes = placement.stripes if placement is not None else None
    where = "" if stripes is None else (
        f"; it is striped over {stripes.stripe_count} MDTs ({stripes.hash_type})" if stripes.is_striped else
        f"; it is on MDT{stripes.mdt_index:04x} only")
    nodes, on_nodes = nodes_of(parts, facts.job_nodes)
    evidence = MetadataStormEvidence(
        creates_per_second=sum(p.creates for p in parts) / seconds,
        opens_per_second=sum(p.opens for p in parts) / seconds,
        unlinks_per_second=sum(p.unlinks for p in parts) / seconds,
        share=share, metadata_targets=facts.metadata_targets,
        stripes=None if stripes is None else stripes.stripe_count,
        unchanged_names=max(0, sum(p.creates - p.unlinks for p in facts.directories if p.directory == place)),
        nodes=nodes, parent_operations_per_second=rate_below(parent, facts) if parent else 0.0)
    sizes = view.sizes_read()  # one that is unknown counts as tiny
    tiny = all(sizes.get(job, 0) <= DOM_BYTES for job in jobs)
    return POLICY.finding(
        view, f"{quoted(subject)} has {evidence.creates_per_second:.0f} creates, {evidence.opens_per_second:.0f} opens "
        f"and {evidence.unlinks_per_second:.0f} unlinks/s, {percent(share)} of all metadata operations, by "
        f"{first_names(jobs)}{on_nodes}{where}", evidence, directories=tuple(places), subject=subject,
        advice_only=False, advice=(*(() if nodes == 1 else spread_advice(places, facts, evidence.unchanged_names)),
                                   *advise(quoted(place), evidence, tiny=tiny)))


def nodes_of(parts: Sequence[DirectoryActivity], job_nodes: Mapping[str, int]) -> tuple[int, str]:
    """The number of nodes of the jobs that do nearly all operations in a directory, and the nodes in words.

    0 and no words if unknown.
    The clients in the changelog show who really works there. Without them, the nodes of the largest of these jobs by
    the scheduler are a lower bound, because several jobs may share a node.
    """
    most = covering(((part, operations(part)) for part in sorted(parts, key=operations, reverse=True)), MOST)
    count, or_more = 0, len(most) > 1
    if all(part.clients for part in most):
        count = len({nid for part in most for nid in part.clients})
        or_more = any(len(part.clients) >= MAX_CLIENTS for part in most)
    elif all(part.job in job_nodes for part in most):
        count = max(job_nodes[part.job] for part in most)
        if count == 1 and or_more:
            count = 0  # jobs of one node each: on the same node, or on several
    if count == 1:
        return 1, " on one node, which gains nothing from more MDTs here"
    return count, f" on {'at least ' if or_more else ''}{count} nodes" if count else ""


def parent_of(place: str) -> str:
    """The parent of a directory; "" for the root, an unknown path, and a directory in the root."""
    return place.rpartition("/")[0] if place.startswith("/") else ""


def used_alike(place: str, parts: Sequence[DirectoryActivity], view: View) -> list[str]:
    """Other directories in the same parent that get files in the same way: steps or runs of one kind of job."""
    parent, made = parent_of(place), sum(part.creates for part in parts)
    if not parent or not made:
        return []
    creates = totals((activity.directory, activity.creates) for activity in view.facts.directories
                     if parent_of(activity.directory) == parent and activity.directory != place)
    return [other for other, count in creates.items() if count >= ALIKE * made]


def work_together(some: Sequence[DirectoryActivity], others: Sequence[DirectoryActivity]) -> bool:
    """Whether the same nodes work in two directories, as in those of steps.

    A directory for each process has one node, so stripes do not help it.
    """
    return len({nid for each in some for nid in each.clients} & {nid for each in others for nid in each.clients}) > 1


def spread_advice(places: Sequence[str], facts: Facts, added: int) -> Iterator[Advice]:
    """Advice to use more MDTs for a directory, with the gain of the papers and the cost for existing entries.

    Remote directories spread several directories, and do nothing for one.
    """
    place, metadata_targets = places[0], facts.metadata_targets
    if metadata_targets == 1:
        return
    placement = facts.placements.get(place)
    stripes = placement.stripes if placement is not None else None
    if stripes is not None and stripes.is_changing:
        yield Advice("wait for its migration, or repeat it: lfs migrate -m", quoted(place),
                     f"the layout of the directory is changing ({stripes.hash_type})")
        return
    if stripes is not None and stripes.is_striped and stripes.stripe_count >= metadata_targets > 0:
        return  # it uses all MDTs already
    count = f"{metadata_targets}" if metadata_targets else "COUNT"
    name = quoted(place)
    default = placement.default if placement is not None else None
    if default is None or default.stripe_count < 2:
        yield Advice(f"lfs mkdir -c {count} NEW_DIRECTORY (or lfs setdirstripe -D -c {count} --max-inherit 1 {name} "
                     "for new ones, since Lustre 2.15)", name, f"spreads names over the MDTs; {GAIN}; {SEVERAL_NODES}")
    if len(places) > 1:
        yield Advice("lfs setdirstripe -D -c 1 -i -1 PARENT", f"the parent of directories such as {name}",
                     "since Lustre 2.13 new subdirectories go to the MDTs in turn (remote directories): each has one "
                     "MDT and one lock, which suits jobs with many directories better than stripes")
    yield Advice(f"lfs migrate -m 0,1,… -c {count} {name}", "on a client, while no job works there",
                 f"moves the existing entries (at least {added:,}): one request to the MDTs for each, which is "
                 "locked meanwhile; every entry gets a new FID; of open files only the names move; files with a copy "
                 "in an archive (HSM) are refused; repeat the command if it is interrupted")


def advise(name: str, evidence: MetadataStormEvidence, *, tiny: bool) -> Iterator[Advice]:
    creates, opens, every = evidence.creates_per_second, evidence.opens_per_second, evidence.operations_per_second
    if every - opens >= CHANGE_SHARE * every:
        yield Advice("use one directory per process or node instead of a shared directory", "in the application",
                     "processes no longer wait for one directory lock")
    if opens > 3 * creates and tiny:
        made = creates >= CREATE_SHARE * opens
        yield Advice(f"lfs setstripe -E 64K -L mdt -E -1 -c 1 {name}" if made else
                     "lfs migrate --non-block -E 64K -L mdt -E -1 -c 1 FILE",
                     ("new files there" if made else f"the files in {name}, when closed") +
                     ", if they are smaller than 64 KiB and the MDTs have room",
                     "the open also returns the data (DoM); stats in one shared directory were 22% fewer (Cray, 2018)")


def plan(finding: Finding, evidence: MetadataStormEvidence, situation: Situation) -> Plan:
    settings = situation.tables.of(DirectoryStriping)
    storm = finding.directories[0]
    parent = parent_of(storm)
    for reason, applies, why in refusals(parent, finding, evidence, situation):
        if applies:
            return Plan((), (Refusal(reason, why).about(quoted(parent or storm)),))
    striping = DefaultStriping(min(evidence.metadata_targets, settings.max_stripes), -1, settings.hash_type, 1)
    return Plan((Action(
        ActKind.SET_DEFAULT_STRIPING, NO_LAYOUT,
        f"{evidence.operations_per_second:.0f} metadata operations/s in {quoted(storm)} use one directory "
        "lock, and its sibling directories are used in the same way", finding.key, parent, striping=striping),), ())


def refusals(parent: str, finding: Finding, evidence: MetadataStormEvidence,
             situation: Situation) -> Iterator[tuple[Reason, bool, str]]:
    """Why no default is set, and whether that is so. The first one that is decides."""
    facts, targets = situation.facts, evidence.metadata_targets
    storm, placement = facts.placements.get(finding.directories[0]), facts.placements.get(parent)
    yield Reason.NO_PATH, not finding.directories[0].startswith("/"), "its path is unknown"
    yield Reason.ROOT_DIRECTORY, not parent, "the default of the root directory applies to the whole file system"
    yield Reason.NOTHING_TO_DO, targets < 2, "the file system has one MDT, or their number is unknown"
    if storm is None or placement is None:
        yield Reason.NO_LAYOUT, True, "its stripes over MDTs cannot be read"
        return
    yield Reason.OTHER_LAYOUT, storm.stripes.stripe_count >= targets, "the busy directory uses all MDTs already"
    if placement.default is not None and not placement.default.is_usual:
        default = " ".join(setdirstripe_arguments(placement.default))
        yield Reason.OTHER_LAYOUT, True, (f"it has a default striping of its own ({default}), which 'lfs mkdir' sets "
                                          "too; 'lfs setdirstripe -D -d' removes it")
    yield (Reason.OTHER_MOVER, placement.stripes.is_changing or storm.stripes.is_changing,
           "it is being migrated or split")
    yield Reason.OLD_RELEASE, situation.capacity.release < (2, 15), (  # LU-13440
        "this client or an MDT may be older than Lustre 2.15, where directories on all levels below would be striped")
    yield Reason.NODES_UNKNOWN, evidence.nodes == 0, (
        "the number of nodes that work in the busy directory is unknown, and one node gains nothing from more MDTs")
    yield Reason.NOT_WORTH, evidence.nodes == 1, (
        "one node works in the busy directory: its kernel creates one name at a time there, so more MDTs do not help")
    yield (Reason.NOT_WORTH, len(finding.directories) < 2,
           "no other directory in it is used in the same way, so no new ones are expected")
    yield (Reason.NOT_WORTH, evidence.creates_per_second < CHANGE_SHARE * evidence.operations_per_second,
           "few of the operations are creates, and opens share the directory lock")
    yield Reason.NO_ROOM, len(facts.metadata) < targets, "the space of an MDT is unknown"
    fullest = max((fill.used for fill in facts.metadata.values()), default=0.0)
    yield (Reason.NO_ROOM, fullest > 1 - situation.tables.of(DirectoryStriping).min_free,
           f"an MDT is {percent(fullest)} full")


def rate_below(directory: str, facts: Facts) -> float:
    """Operations per second. The counts begin again when a default layout changes, but not the latest ones."""
    return max(sum(operations(each) for each in activities
                   if each.directory == directory or each.directory.startswith(f"{directory}/")) / max(seconds, 1.0)
               for activities, seconds in ((facts.directories, facts.directory_seconds),
                                           (facts.latest_directories, facts.latest_seconds)))


def judge(place: str, evidence: MetadataStormEvidence, facts: Facts, seconds: float) -> Judgement | None:
    if seconds < JUDGE_SECONDS or not JUDGE_SECONDS / 2 <= facts.directory_seconds <= seconds:
        return None  # the operations since the act are not known yet, or for too short a time after a start
    before, after = evidence.parent_operations_per_second, rate_below(place, facts)
    numbers = f"{before:.0f} operations/s before, {after:.0f} after"
    if after < GONE_SHARE * before:
        verdict, words = Verdict.CANNOT_TELL, "no verdict, because the jobs have stopped"
    elif after >= (1 + MIN_GAIN) * before:
        verdict, words = Verdict.HELPED, "it helped"
    else:
        verdict, words = Verdict.DID_NOT_HELP, "it did not help"
    return Judgement(verdict, before, before, after, words=f"{words}: {numbers}")


def busy_directory(settings: Settings) -> float:
    return settings.enter * LEAVE / (1 + MAX_ALIKE)


POLICY = Policy("metadata-storm", Settings, find, evidence=MetadataStormEvidence, plan=plan, by_scope=False,
                tables={"directory_striping": DirectoryStriping}, judge_default=judge, busy_directory=busy_directory)
