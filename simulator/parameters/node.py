"""What a node shows once: mounts, version, health, pools, locks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.cluster import Cluster


_OPTIONS = "rw,flock,checksum,noencrypt,lazystatfs,lruresize,nolock,statfs_project,nosync_on_close,user_xattr,verbose"


def files(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """All of it."""
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
    lines += [f"{device} {client.settings.mount_point} lustre {_OPTIONS} 0 0" for client in cluster.clients]
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
        held_by = {osc.name: osc.locks for osc in client.oscs} | {mdc.name: mdc.locks for mdc in client.mdcs}
        for name, locks in held_by.items():
            yield f"{namespaces}/{name}/lock_count", f"{locks}\n"
    for mdt in cluster.mdts:
        held = sum(client.mdcs[mdt.index].locks for client in cluster.clients)
        yield f"{namespaces}/mdt-{mdt.name}_UUID/lock_count", f"{held}\n"
