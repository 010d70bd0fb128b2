"""Reads this node's parameter files: job counters, conditions of targets, pools, free space of MDTs, NIDs.

The files may come from a server, a recording or the simulator. By default clients send no job ids
(``jobid_var=disable``). Servers then have no job statistics, and tierd finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from sys import intern

from lustre.formats import changelog_users, df, job_stats, lnet, pools, recovery_status, stats
from lustre.mounted import mdts_of, read_metadata_space, space_of
from lustre.parameters import Tree, parse_device, read_whole
from tierd.model import Capacity, MetadataSpace
from tierd.sense.counters import CounterTable, JobEntry
from tierd.sense.readings import ChangelogState, Reading, ServiceCounters, Stamp, condition, is_ost, number_of


def reading(tree: Tree, time: float, now: Callable[[], float] | None = None) -> Reading:
    """Job counters and conditions of every target this node serves. Targets that cannot be read are left out. ``now``
    is this node's clock, for the time at which each target was read.
    """
    stamps: dict[str, Stamp] = {}
    jobs: dict[tuple[str, str], JobEntry] = {}
    targets = set()
    conditions = {}
    for subsystem in ("obdfilter", "mdt"):
        for target in tree.devices(subsystem):
            begun = now() if now else time
            if (data := tree.read(f"{subsystem}/{target}/job_stats")) is None:
                continue
            if now:
                stamps[target] = Stamp(THIS_NODE, (begun + now()) / 2)  # the kernel does not say when in between
            targets.add(target)
            jobs.update(((target, job), counters) for job, counters in job_counters(data))
            if condition := condition_of(tree, subsystem, target):
                conditions[target] = condition
    return Reading(time, CounterTable.of(jobs), frozenset(targets), conditions, changelogs=changelogs(tree),
                   is_flash=flash_devices(tree), data_limits=data_limits(tree),
                   services=metadata_services(tree, targets), stamps=stamps, complete=frozenset(targets))


THIS_NODE = "this node"
SERVICE = "mds/MDS/mdt"


def metadata_services(tree: Tree, targets: Collection[str] = ()) -> dict[str, ServiceCounters]:
    """The service for metadata requests of this node and its targets; empty if it serves no MDT."""
    if (data := tree.read(f"{SERVICE}/stats")) is None:
        return {}
    found = {name: stats.parse(data).counter(name) for name in (b"req_waittime", b"req_active")}
    wait, active = found.values()
    if wait is None or active is None or wait.samples <= 0:
        return {}
    threads = [df.integer(tree.read(f"{SERVICE}/threads_{which}") or b"") or 0 for which in ("started", "max")]
    mdts = frozenset(target for target in targets if not is_ost(target))
    return {THIS_NODE: ServiceCounters(threads[0], threads[1], wait.samples, wait.sum, active.sum, mdts=mdts)}


OSD_KINDS = ("osd-ldiskfs", "osd-zfs", "osd-wbcfs")


def flash_devices(tree: Tree) -> dict[str, bool]:
    """Whether the device of each target of this node is flash, for targets whose release reports it."""
    found: dict[str, bool] = {}
    for kind in OSD_KINDS:
        for target in tree.devices(kind):
            value = df.integer(tree.read(f"{kind}/{target}/nonrotational") or b"")
            if value in {0, 1}:
                found[target] = value == 1
    return found


def data_limits(tree: Tree) -> dict[str, int]:
    """Maximum bytes of a new component with data on each MDT of this node (``lod_dom_stripesize_recalc``). Lustre
    lowers the limit while an MDT has little free space. Releases before 2.13 report only the limit as set.
    """
    found: dict[str, int] = {}
    for name in tree.devices("lod"):
        device = parse_device(name)
        now_kib = df.integer(tree.read(f"lod/{name}/dom_stripesize_cur_kb") or b"")
        limit = now_kib << 10 if now_kib is not None else df.integer(tree.read(f"lod/{name}/dom_stripesize") or b"")
        if limit is not None and device.kind == "mdtlov":
            found[f"{device.fsname}-{device.target}"] = limit
    return found


def changelogs(tree: Tree) -> dict[str, ChangelogState]:
    """Changelog users and masks of the MDTs of this node. MDTs whose users cannot be read are left out."""
    found = {}
    for target in tree.devices("mdd"):
        if (data := tree.read(f"mdd/{target}/changelog_users")) is not None:
            known = changelog_users.parse(data)
            mask = changelog_users.recorded(known, tree.read(f"mdd/{target}/changelog_mask"),
                                            tree.read(f"mdd/{target}/changelog_current_mask"))
            found[target] = ChangelogState(
                known.current_index, frozenset(number_of(user.id.decode("ascii", "replace")) for user in known.users),
                None if mask is None else frozenset(kind.decode("ascii", "replace") for kind in mask),
                max((known.current_index - user.index for user in known.users), default=0)
                if known.current_index is not None else None)
    return found


def job_counters(data: bytes) -> Iterator[tuple[str, JobEntry]]:
    """Job id and counters of every entry of a ``job_stats`` file. Readings share one string for each job."""
    for job in job_stats.parse(data).jobs:
        names = [name.decode("ascii", "replace") for name in job.names]
        sizes: dict[int, float] = {}
        for _, buckets in job.histograms:
            for upper_bytes, count in buckets:
                sizes[upper_bytes] = sizes.get(upper_bytes, 0.0) + count
        yield intern(job.job_id.decode("utf-8", "replace")), JobEntry(
            dict(zip(names, map(float, job.samples), strict=True)),
            {name: float(total) for name, total in zip(names, job.sums, strict=True) if total},
            sizes, job.start_time.decode("ascii", "replace"))


def condition_of(tree: Tree, subsystem: str, target: str) -> str:
    """Why the throughput of the target cannot be compared now, or "" when it is healthy."""
    recovery = recovery_status.parse(tree.read(f"{subsystem}/{target}/recovery_status") or b"")
    space = space_of(tree, f"{subsystem}/{target}") if subsystem == "obdfilter" else None
    return condition(df.integer(tree.read(f"{subsystem}/{target}/degraded") or b""),
                     None if recovery.in_recovery and not recovery.status else recovery.in_recovery,  # or unreadable
                     space and space.size_bytes, space and space.avail_bytes)


def pool_capacity(tree: Tree) -> Capacity:
    """Pools and their space, from the MDS or a client on this node."""
    members: dict[str, tuple[str, ...]] = {}
    for subsystem in ("lod", "lov"):
        for device in tree.devices(subsystem):
            for pool in tree.children(f"{subsystem}/{device}/pools"):
                found = pools.parse(tree.read(f"{subsystem}/{device}/pools/{pool}") or b"").rows
                members.setdefault(pool, found)
    spaces = {target: space_of(tree, f"obdfilter/{target}") for target in tree.devices("obdfilter")}
    return Capacity(
        members,
        {pool: sum(spaces[t].size_bytes or 0 for t in targets if t in spaces) for pool, targets in members.items()},
        {pool: sum(spaces[t].avail_bytes or 0 for t in targets if t in spaces) for pool, targets in members.items()})


def why_jobs_are_unnamed(tree: Tree) -> str:
    """Why jobs have no ids, by ``jobid_var`` of the client on this node; "" if it is set or unknown."""
    if (tree.read("jobid_var") or b"").strip() != b"disable":
        return ""
    return ("jobid_var is 'disable' on this node, so Lustre has no job statistics and tierd finds nothing. On the MGS: "
            "lctl set_param -P jobid_var=procname_uid, or the variable of the batch system (SLURM_JOB_ID)")


def metadata_spaces(tree: Tree, fsname: str) -> tuple[MetadataSpace, ...]:
    """Room on all MDTs, as this client sees it; empty if that of an MDT is unknown, or if there is no MDT."""
    found = read_metadata_space(tree, fsname)
    return tuple(found.values()) if len(found) == len(mdts_of(tree, fsname)) else ()


def own_nids(tree: Tree) -> frozenset[str]:
    """NIDs of this node; empty if they cannot be read (debugfs closed)."""
    place = tree.lnet_path("nis")
    try:
        data = read_whole(place) if place is not None else None
    except OSError:
        data = None
    return frozenset(each.nid.decode("ascii", "replace") for each in lnet.parse_nis(data or b"").rows)
