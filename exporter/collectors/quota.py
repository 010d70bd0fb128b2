"""Quotas: limits at the quota master (``qmt.*.*.glb-*``), usage and enforcement on targets (``osd-*.*.quota_slave*``).

The collector ``quota`` is off by default, because it has series for every user, group and project, and each read walks
an index on disk. ``--quota.limit`` limits the series: each parameter shows the ids with the highest usage and counts
the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from exporter.capacity import OSD_KINDS
from exporter.collector import Collect, Collector, Context
from exporter.exposition import Gauge, MetricsPage, label_text
from exporter.node import Node
from lustre.formats import quota
from lustre.formats.quota import Account, Limit, QuotaSlave

T = TypeVar("T", Account, Limit)
LIMITED = ("fs", "pool", "type", "id")
USED = ("fs", "target", "type", "id")
TYPES = {"usr": "user", "grp": "group", "prj": "project"}
DEFAULT_POOL = "0x0"
"""The pool of all targets."""


def _limit(name: str, text: str, unit: str = "") -> Gauge:
    return Gauge(f"lustre_quota_{name}", text, LIMITED, "qmt.*.*.glb-usr", unit)


OF_LQA = ("fs", "lqa", "type", "id")
LQA = "lqa-"
"""Begin of the folder of a logical quota aggregation (LQA): limits on ranges of ids together, since 2.18."""


def _lqa_limit(plain: Gauge) -> Gauge:
    text = plain.help.removesuffix(".").partition(" for the user")[0]
    name = plain.name.replace("lustre_quota_", "lustre_quota_lqa_")
    help_ = f"{text} of a logical quota aggregation (LQA), by id."
    return Gauge(name, help_, OF_LQA, "qmt.*.*.glb-usr", plain.unit, "2.18+")


BYTES = (
    _limit("hard_limit_bytes", "Hard limit on space for the user, group or project.", "bytes"),
    _limit(
        "soft_limit_bytes",
        "Soft limit on space for the user, group or project, which may be exceeded during the grace period.",
        "bytes",
    ),
    _limit(
        "granted_bytes",
        "Space granted to the targets for the user, group or project: used or soon to be used.",
        "bytes",
    ),
)
FILES = (
    _limit("hard_limit_files", "Hard limit on the number of files for the user, group or project."),
    _limit(
        "soft_limit_files",
        "Soft limit on the number of files for the user, group or project, which may be"
        " exceeded during the grace period.",
    ),
    _limit(
        "granted_files",
        "Files granted to the metadata targets for the user, group or project: created or soon to be created.",
    ),
)
LQA_BYTES, LQA_FILES = tuple(map(_lqa_limit, BYTES)), tuple(map(_lqa_limit, FILES))
LQA_RESOURCES = {"dt": (LQA_BYTES, 1 << 10), "md": (LQA_FILES, 1)}
LIMITED_RESOURCES = {"dt": (BYTES, 1 << 10), "md": (FILES, 1)}
GRACE = Gauge(
    "lustre_quota_grace_end_timestamp_seconds",
    "Time when the grace period of the soft limit ends, in seconds since 1970. Shown only while the soft limit is"
    " exceeded.",
    (*LIMITED, "resource"),
    "qmt.*.*.glb-usr",
    "seconds",
)
USED_BYTES = Gauge(
    "lustre_quota_used_bytes",
    "Space used on the target by the user, group or project.",
    USED,
    "osd-*.*.quota_slave.acct_user",
    "bytes",
)
USED_FILES = Gauge(
    "lustre_quota_used_files",
    "Inodes (MDT) or objects (OST) on the target owned by the user, group or project.",
    USED,
    "osd-*.*.quota_slave.acct_user",
)
IDS_BEYOND_LIMIT = Gauge(
    "lustre_quota_ids_beyond_limit",
    "Users, groups or projects without series because of --quota.limit, by Lustre parameter.",
    ("fs", "parameter"),
    "qmt.*.*.glb-usr",
)


def start_quota(context: Context) -> Collect:
    """Start; no state is kept between passes."""
    most = context.settings.quota_limit

    def collect(node: Node, page: MetricsPage) -> None:
        for master, device in node.devices("qmt"):
            for pool, _ in node.devices(f"qmt/{master}"):
                resource, dash, name = pool.removeprefix(LQA).partition("-")
                if dash and resource in LIMITED_RESOURCES:
                    for short in TYPES:
                        _limits(node, page, (f"qmt/{master}", pool, f"glb-{short}"), (device.fsname, name), most)
        for kind in OSD_KINDS:
            for target, device in node.targets(kind):
                for type_ in TYPES.values():
                    _accounts(node, page, (kind, target, type_), (device.fsname, device.target), most)

    return collect


def _limits(node: Node, page: MetricsPage, place: tuple[str, str, str], of: tuple[str, str], most: int) -> None:
    data = node.read(*place)
    if data is None:
        return
    parsed = quota.parse_limits(data)
    node.skipped(place[0], place[2], parsed.skipped)
    is_lqa = place[1].startswith(LQA)
    resource = place[1].removeprefix(LQA).partition("-")[0]
    (hard, soft, granted), unit = (LQA_RESOURCES if is_lqa else LIMITED_RESOURCES)[resource]
    extra = b',resource="%b"' % (b"bytes" if resource == "dt" else b"files")
    fs, pool = of[0], "" if of[1] == DEFAULT_POOL else of[1]
    type_ = TYPES[place[2].removeprefix("glb-")]
    limited = [entry for entry in parsed.entries if entry.hard or entry.soft or entry.granted]
    where = label_text(fs=fs, parameter=f"{place[1]}.{place[2]}")
    for entry in _largest(page, limited, most, lambda limit: limit.granted, where):
        where_limited = {"lqa": of[1]} if is_lqa else {"pool": pool}
        labels = label_text(fs=fs, **where_limited, type=type_, id=str(entry.id))
        page.sample(hard, labels, entry.hard * unit if entry.hard else None)
        page.sample(soft, labels, entry.soft * unit if entry.soft else None)
        page.sample(granted, labels, entry.granted * unit)
        if entry.id and entry.grace_end and not entry.default and not is_lqa:
            page.sample(GRACE, labels + extra, entry.grace_end)


def _accounts(node: Node, page: MetricsPage, place: tuple[str, str, str], of: tuple[str, str], most: int) -> None:
    kind, target, type_ = place
    folders = ("quota_slave", "quota_slave_md", "quota_slave_dt")  # quota_slave links to one of the others
    data = next((d for folder in folders if (d := node.read(kind, target, f"{folder}/acct_{type_}")) is not None), None)
    if data is None:
        return
    parsed = quota.parse_accounts(data)
    node.skipped(kind, f"quota_slave/acct_{type_}", parsed.skipped)
    where = label_text(fs=of[0], parameter=f"{of[1]}.acct_{type_}")
    for entry in _largest(page, parsed.entries, most, lambda account: (account.kilobytes, account.inodes), where):
        labels = label_text(fs=of[0], target=of[1], type=type_, id=str(entry.id))
        page.sample(USED_BYTES, labels, entry.kilobytes << 10)
        page.sample(USED_FILES, labels, entry.inodes)


def _largest(
    page: MetricsPage, entries: Sequence[T], most: int, size: Callable[[T], int | tuple[int, int]], labels: bytes
) -> Iterable[T]:
    """Yield each id once, sorted, limited to the ``most`` ids with the highest usage."""
    once = list({entry.id: entry for entry in reversed(entries)}.values())
    if most and len(once) > most:
        page.sample(IDS_BEYOND_LIMIT, labels, len(once) - most)
        once = sorted(once, key=lambda entry: (size(entry), entry.id))[-most:]
    return sorted(once, key=lambda entry: entry.id)


QUOTA_FAMILIES = (*BYTES, *FILES, *LQA_BYTES, *LQA_FILES, GRACE, USED_BYTES, USED_FILES, IDS_BEYOND_LIMIT)
QUOTA_COLLECTOR = Collector(
    "quota", "quota limits and usage of users, groups and projects", QUOTA_FAMILIES, start_quota, default=False
)
SLAVE_LABELS = ("fs", "target", "resource")
INFO = "osd-*.*.quota_slave_dt.info, osd-*.*.quota_slave_md.info"
CONNECTED = Gauge(
    "lustre_quota_slave_connected",
    "Whether the target is connected to the quota master (1) or not (0), by resource: bytes or files.",
    SLAVE_LABELS,
    INFO,
)
ENFORCED = Gauge(
    "lustre_quota_slave_enforced",
    "Whether the target enforces quotas (1) or not (0), by type of quota.",
    (*SLAVE_LABELS, "type"),
    INFO,
)
UP_TO_DATE = Gauge(
    "lustre_quota_slave_up_to_date",
    "Whether the target's copy of quota limits and grants is current (1) or outdated (0), by type of quota. Shown"
    " for enforced types only.",
    (*SLAVE_LABELS, "type"),
    INFO,
)
SLAVE_RESOURCES = {b"dt": b',resource="bytes"', b"md": b',resource="files"'}


def start_quota_slave(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: MetricsPage) -> None:
        for kind in OSD_KINDS:
            for target, labels in node.labelled_targets(kind):
                for resource, slave in _slaves(node, kind, target):
                    _put_slave(page, labels + SLAVE_RESOURCES[resource], slave)

    return collect


def _slaves(node: Node, kind: str, target: str) -> Iterator[tuple[bytes, QuotaSlave]]:
    """Yield the quota state by resource. ``quota_slave`` links to another folder; up to 2.11 it is the only folder."""
    found = {
        resource: _read_slave(node, kind, target, f"quota_slave_{resource.decode()}") for resource in SLAVE_RESOURCES
    }
    if not any(found.values()) and (slave := _read_slave(node, kind, target, "quota_slave")) is not None:
        found[slave.resource] = slave
    yield from ((resource, slave) for resource, slave in found.items() if slave is not None and resource)


def _read_slave(node: Node, kind: str, target: str, folder: str) -> QuotaSlave | None:
    data = node.read(kind, target, f"{folder}/info")
    if data is None:
        return None
    slave = quota.parse_slave(data)
    node.skipped(kind, f"{folder}/info", slave.skipped)
    return slave


def _put_slave(page: MetricsPage, labels: bytes, slave: QuotaSlave) -> None:
    page.sample(CONNECTED, labels, None if slave.connected is None else int(slave.connected))
    if slave.enforced is None:
        return
    for type_ in quota.TYPES.values():
        page.sample(ENFORCED, labels + b',type="%b"' % type_, int(type_ in slave.enforced))
    for type_, is_so in slave.up_to_date:
        if type_ in slave.enforced:  # other types have no copies
            page.sample(UP_TO_DATE, labels + b',type="%b"' % type_, int(is_so))


QUOTA_SLAVE_COLLECTOR = Collector(
    "quota_slave", "whether targets enforce quotas", (CONNECTED, ENFORCED, UP_TO_DATE), start_quota_slave
)
