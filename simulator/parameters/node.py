"""Parameter files of the node: mounts, version, health, pools, lock counts, and sizes of file systems and targets.

``kbytestotal`` and similar files appear at every layer: target, connection, mount.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.cluster import Cluster
from simulator.servers.mdt import Mdt
from simulator.servers.ost import Ost

_OPTIONS = "rw,flock,checksum,noencrypt,lazystatfs,lruresize,nolock,statfs_project,nosync_on_close"


def node_files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    yield "proc/mounts", _mounts(cluster)
    yield "sys/fs/lustre/health_check", "healthy\n"
    yield "sys/fs/lustre/jobid_var", "procname_uid\n"
    yield "sys/fs/lustre/jobid_name", "%e.%u\n"
    yield "sys/fs/lustre/version", f"{cluster.settings.version}\n"
    yield from _pools(cluster)
    yield from _locks(cluster)


def _mounts(cluster: Cluster) -> str:
    settings = cluster.settings
    lines = [
        "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0",
        "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0",
        "debugfs /sys/kernel/debug debugfs rw,relatime 0 0",
    ]
    for number, target in enumerate(cluster.targets):
        kind, index = target.name[-7:-4].lower(), target.index
        device = f"/dev/vd{chr(ord('b') + number)}" if number < 24 else f"/dev/mapper/{target.name}"
        options = f"rw,svname={target.name},mgsnode={settings.nid},osd=osd-ldiskfs"
        lines.append(f"{device} /mnt/t/{kind}{index} lustre {options} 0 0")
    device = f"{settings.nid}:/{settings.fsname}"
    for client in cluster.clients:
        options = f"{_OPTIONS},{'user_xattr' if client.settings.user_xattr else 'nouser_xattr'},verbose"
        lines.append(f"{device} {client.settings.mount_point} lustre {options} 0 0")
    return "\n".join(lines) + "\n"


def _pools(cluster: Cluster) -> Iterator[tuple[str, str]]:
    fsname = cluster.settings.fsname
    owners = [f"{kind}/{mdt.name}-mdtlov" for mdt in cluster.mdts for kind in ("lod", "lov")]
    owners += [f"lov/{fsname}-clilov-{client.settings.instance}" for client in cluster.clients]
    for name, members in cluster.settings.pools.items():
        text = "".join(f"{cluster.osts[index].name}_UUID\n" for index in members)
        for owner in owners:
            yield f"proc/fs/lustre/{owner}/pools/{name}", text


def _locks(cluster: Cluster) -> Iterator[tuple[str, str]]:
    namespaces = "sys/fs/lustre/ldlm/namespaces"
    for ost in cluster.osts:
        held = sum(client.oscs[ost.index].locks for client in cluster.clients)
        yield f"{namespaces}/filter-{ost.name}_UUID/lock_count", f"{held}\n"
    for client in cluster.clients:
        for osc in client.oscs:
            yield f"{namespaces}/{osc.name}/lock_count", f"{osc.locks}\n"
    without = [mdc.name for client in cluster.clients for mdc in client.mdcs]  # locks of MDTs are not modelled
    for name in (*without, *(f"mdt-{mdt.name}_UUID" for mdt in cluster.mdts)):
        yield f"{namespaces}/{name}/lock_count", "0\n"


_SYSFS = "sys/fs/lustre"


def target_sizes(cluster: Cluster) -> Iterator[tuple[str, str]]:
    for ost in cluster.osts:
        yield from _under(f"{_SYSFS}/obdfilter/{ost.name}", _sizes_of(ost))
        yield f"{_SYSFS}/obdfilter/{ost.name}/degraded", f"{int(ost.degraded)}\n"
    for mdt in cluster.mdts:
        yield from _under(f"{_SYSFS}/osd-ldiskfs/{mdt.name}", _sizes_of(mdt))


def client_sizes(cluster: Cluster) -> Iterator[tuple[str, str]]:
    parts = [_sizes_of(ost) for ost in cluster.osts]
    whole = {name: sum(part[name] for part in parts) for name in parts[0]}
    whole["filestotal"] = sum(mdt.settings.capacity.inodes for mdt in cluster.mdts)
    whole["filesfree"] = sum(mdt.inodes_free for mdt in cluster.mdts)
    for client in cluster.clients:
        suffix = client.settings.instance
        yield from _under(f"{_SYSFS}/llite/{cluster.settings.fsname}-{suffix}", whole)
        for osc, sizes in zip(client.oscs, parts, strict=True):
            yield from _under(f"{_SYSFS}/osc/{osc.name}", sizes)


def _sizes_of(target: Ost | Mdt) -> dict[str, int]:
    if isinstance(target, Ost):
        space = target.store.space()
        numbers = (space.size_bytes, space.free_bytes, space.avail_bytes)
        inodes = target.store.capacity.inodes, target.store.inodes_free
    else:
        size = target.settings.capacity.size_bytes
        numbers = (size, size - (64 << 20), size - (160 << 20))
        inodes = target.settings.capacity.inodes, target.inodes_free
    total, free, avail = (number >> 10 for number in numbers)
    return {
        "kbytestotal": total, "kbytesfree": free, "kbytesavail": avail,
        "filestotal": inodes[0], "filesfree": inodes[1],
    }  # fmt: skip


def _under(directory: str, numbers: dict[str, int]) -> Iterator[tuple[str, str]]:
    for name, number in numbers.items():
        yield f"{directory}/{name}", f"{number}\n"
    yield f"{directory}/blocksize", "4096\n"
