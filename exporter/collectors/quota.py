"""Quotas: limits at the quota master (``qmt.*.*.glb-*``), usage and enforcement on targets (``osd-*.*.quota_slave*``).

The collector ``quota`` is off by default, because it has series for every user, group and project, and each read walks
an index on disk. ``--quota.limit`` limits the series: each parameter shows the ids with the highest usage and counts
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter, lt

from exporter.capacity import OSD_KINDS
from exporter.collector import Collect, Collector, Context, stateless
from exporter.exposition import Gauge, MetricsPage, double_percent, label_text
from exporter.node import Node
from lustre.formats import quota
from lustre.formats.compiled import mark
from lustre.formats.quota import Accounts, Limit, QuotaSlave

LIMITED = ("fs", "pool", "type", "id")
USED = ("fs", "target", "type", "id")
TYPES = {"usr": "user", "grp": "group", "prj": "project"}
DEFAULT_POOL = "0x0"
"""The pool of all targets."""


def _limit(name: str, text: str) -> Gauge:
    return Gauge(f"lustre_quota_{name}", text, LIMITED, "qmt.*.*.glb-usr")


OF_LQA = ("fs", "lqa", "type", "id")
LQA = "lqa-"
"""Start of the name of the folder of a logical quota aggregation (LQA): limits on ranges of ids together, since
2.18."""


def _lqa_limit(plain: Gauge) -> Gauge:
    text = plain.help.removesuffix(".").partition(" for the user")[0]
    name = plain.name.replace("lustre_quota_", "lustre_quota_lqa_")
    help_ = f"{text} of a logical quota aggregation (LQA), by id."
    return Gauge(name, help_, OF_LQA, "qmt.*.*.glb-usr", "2.18+")


BYTES = (
    _limit("hard_limit_bytes", "Hard limit on space for the user, group or project. Id 0 has the default."),
    _limit(
        "soft_limit_bytes",
        "Soft limit on space for the user, group or project, which may be exceeded during the grace period. Id 0 has"
        " the default."),
    _limit("granted_bytes", "Space granted to the targets for the user, group or project: used or soon to be used."),
)
FILES = (
    _limit(
        "hard_limit_files", "Hard limit on the number of files for the user, group or project. Id 0 has the default."),
    _limit(
        "soft_limit_files", "Soft limit on the number of files for the user, group or project, which may be"
        " exceeded during the grace period. Id 0 has the default."),
    _limit(
        "granted_files",
        "Files granted to the metadata targets for the user, group or project: created or soon to be created."),
)
LQA_BYTES, LQA_FILES = tuple(map(_lqa_limit, BYTES)), tuple(map(_lqa_limit, FILES))
LQA_RESOURCES = {"dt": (LQA_BYTES, 1 << 10), "md": (LQA_FILES, 1)}
LIMITED_RESOURCES = {"dt": (BYTES, 1 << 10), "md": (FILES, 1)}
GRACE = Gauge(
    "lustre_quota_grace_end_timestamp_seconds",
    "Time when the grace period of the soft limit ends, in seconds since 1970. Shown only while the soft limit is"
    " exceeded.", (*LIMITED, "resource"), "qmt.*.*.glb-usr")
USED_BYTES = Gauge(
    "lustre_quota_used_bytes", "Space used on the target by the user, group or project.", USED,
    "osd-*.*.quota_slave.acct_user")
USED_FILES = Gauge(
    "lustre_quota_used_files", "Inodes (MDT) or objects (OST) on the target owned by the user, group or project.", USED,
    "osd-*.*.quota_slave.acct_user")
IDS_BEYOND_LIMIT = Gauge(
    "lustre_quota_ids_beyond_limit",
    "Users, groups or projects without series because of --quota.limit, by Lustre parameter.", ("fs", "parameter"),
    "qmt.*.*.glb-usr")


@dataclass(frozen=True, slots=True)
class _RenderedAccounts:
    """The lines of one ``acct_…`` file, and the mark of its text."""

    mark: int
    labels: bytes
    used_bytes: bytes
    used_files: bytes
    beyond_limit: int
    """Number of ids without lines."""
    skipped: int

    def put(self, page: MetricsPage, parameter: bytes) -> None:
        page.sample(IDS_BEYOND_LIMIT, parameter, self.beyond_limit or None)
        page.add(USED_BYTES, self.used_bytes)
        page.add(USED_FILES, self.used_files)


AccountsFile = tuple[str, str, str]
"""OSD, target and type: user, group or project."""


def start_quota(context: Context) -> Collect:
    """Start. The lines of accounts are reused while their file does not change."""
    most = context.settings.quota_limit
    before: dict[AccountsFile, _RenderedAccounts] = {}

    def collect(node: Node, page: MetricsPage) -> None:
        nonlocal before
        for master, device in node.devices("qmt"):
            for pool, _ in node.devices(f"qmt/{master}"):
                resource, dash, name = pool.removeprefix(LQA).partition("-")
                if dash and resource in LIMITED_RESOURCES:
                    for short in TYPES:
                        _limits(node, page, (f"qmt/{master}", pool, f"glb-{short}"), (device.fsname, name), most)
        now: dict[AccountsFile, _RenderedAccounts] = {}
        for kind in OSD_KINDS:
            for target, device in node.targets(kind):
                for type_ in TYPES.values():
                    place = kind, target, type_
                    labels = label_text(fs=device.fsname, target=device.target, type=type_)
                    found = _accounts(node, place, labels, most, before.get(place))
                    if found is not None:
                        now[place] = found
                        where = label_text(fs=device.fsname, parameter=f"{device.target}.acct_{type_}")
                        found.put(page, where)
        page.count_chunks(len(now), sum([found is before.get(place) for place, found in now.items()]))
        before = now

    return collect


def _limits(node: Node, page: MetricsPage, place: tuple[str, str, str], of: tuple[str, str], most: int) -> None:
    if (parsed := node.parsed(*place, quota.parse_limits)) is None:
        return
    is_lqa = place[1].startswith(LQA)
    resource = place[1].removeprefix(LQA).partition("-")[0]
    (hard, soft, granted), unit = (LQA_RESOURCES if is_lqa else LIMITED_RESOURCES)[resource]
    extra = b',resource="%b"' % (b"bytes" if resource == "dt" else b"files")
    fs, pool = of[0], "" if of[1] == DEFAULT_POOL else of[1]
    type_ = TYPES[place[2].removeprefix("glb-")]
    limited = [entry for entry in parsed.rows if entry.hard or entry.soft or entry.granted]
    where = label_text(fs=fs, parameter=f"{place[1]}.{place[2]}")
    for entry in _largest(page, limited, most, where):
        where_limited = {"lqa": of[1]} if is_lqa else {"pool": pool}
        labels = label_text(fs=fs, **where_limited, type=type_, id=str(entry.id))
        page.sample(hard, labels, entry.hard * unit if entry.hard else None)
        page.sample(soft, labels, entry.soft * unit if entry.soft else None)
        page.sample(granted, labels, entry.granted * unit if entry.granted >= 0 else None)
        # that of id 0 is the length of the grace period
        if entry.id and entry.grace_end and not entry.default and not is_lqa:
            page.sample(GRACE, labels + extra, entry.grace_end)


def _accounts(
    node: Node, place: AccountsFile, labels: bytes, most: int, before: _RenderedAccounts | None
) -> _RenderedAccounts | None:
    """Return the lines of a file; those from before if the file has not changed, and None if there is no file."""
    kind, target, type_ = place
    folders = ("quota_slave", "quota_slave_md", "quota_slave_dt")  # quota_slave links to one of the others
    data = next((d for folder in folders if (d := node.read(kind, target, f"{folder}/acct_{type_}")) is not None), None)
    if data is None:
        return None
    marked = mark(data, 0, len(data))
    if before is None or (before.mark, before.labels) != (marked, labels):
        before = _render_accounts(quota.parse_accounts(data), marked, labels, most)
    node.skipped(kind, f"quota_slave/acct_{type_}", before.skipped)
    return before


def _render_accounts(accounts: Accounts, marked: int, labels: bytes, most: int) -> _RenderedAccounts:
    ids, inodes, kilobytes = accounts.ids, accounts.inodes, accounts.kilobytes
    beyond_limit = 0
    if (most and len(ids) > most) or not all(map(lt, ids, ids[1:])):  # sorted, each id once
        rows = zip(kilobytes[::-1], inodes[::-1], ids[::-1], strict=True)
        once = {row[2]: row for row in rows}  # the first row of an id counts
        largest = sorted(once.values())[-most:] if most else [*once.values()]
        beyond_limit = len(once) - len(largest)
        largest.sort(key=itemgetter(2))
        kilobytes, inodes, ids = [tuple(column) for column in zip(*largest, strict=True)]
    used = [kilobyte << 10 for kilobyte in kilobytes]
    return _RenderedAccounts(
        marked, labels, _lines_by_id(USED_BYTES, labels, ids, used), _lines_by_id(USED_FILES, labels, ids, inodes),
        beyond_limit, accounts.skipped,
    )  # fmt: skip


def _lines_by_id(family: Gauge, labels: bytes, ids: Sequence[int], values: Sequence[int]) -> bytes:
    line = b'%b{%b,id="%%d"} %%d\n' % (family.name.encode(), double_percent(labels))
    return line * len(ids) % tuple(chain.from_iterable(zip(ids, values, strict=True)))


def _largest(page: MetricsPage, entries: Sequence[Limit], most: int, labels: bytes) -> Iterable[Limit]:
    """Return each id once, sorted, limited to the ``most`` ids with the largest grants."""
    once = list({entry.id: entry for entry in reversed(entries)}.values())
    if most and len(once) > most:
        page.sample(IDS_BEYOND_LIMIT, labels, len(once) - most)
        once = sorted(once, key=lambda entry: (entry.granted, entry.id))[-most:]
    return sorted(once, key=lambda entry: entry.id)


QUOTA_FAMILIES = (*BYTES, *FILES, *LQA_BYTES, *LQA_FILES, GRACE, USED_BYTES, USED_FILES, IDS_BEYOND_LIMIT)
QUOTA_COLLECTOR = Collector(
    "quota", "quota limits and usage of users, groups and projects", QUOTA_FAMILIES, start_quota, default=False)
SLAVE_LABELS = ("fs", "target", "resource")
INFO = "osd-*.*.quota_slave_dt.info, osd-*.*.quota_slave_md.info"
CONNECTED = Gauge(
    "lustre_quota_slave_connected",
    "Whether the target is connected to the quota master (1) or not (0), by resource: bytes or files.", SLAVE_LABELS,
    INFO)
ENFORCED = Gauge(
    "lustre_quota_slave_enforced", "Whether the target enforces quotas (1) or not (0), by type of quota.",
    (*SLAVE_LABELS, "type"), INFO)
UP_TO_DATE = Gauge(
    "lustre_quota_slave_up_to_date",
    "Whether the target's copy of quota limits and grants is current (1) or outdated (0), by type of quota. Shown"
    " for enforced types only.", (*SLAVE_LABELS, "type"), INFO)
SLAVE_RESOURCES = {b"dt": b',resource="bytes"', b"md": b',resource="files"'}


def collect_quota_slave(node: Node, page: MetricsPage) -> None:
    for kind in OSD_KINDS:
        for target, labels in node.labelled_targets(kind):
            for resource, slave in _slaves(node, kind, target):
                _put_slave(page, labels + SLAVE_RESOURCES[resource], slave)


def _slaves(node: Node, kind: str, target: str) -> Iterator[tuple[bytes, QuotaSlave]]:
    """Yield the quota state by resource. ``quota_slave`` links to another folder; up to 2.11 it is the only folder."""
    found = {resource: node.parsed(kind, target, f"quota_slave_{resource.decode()}/info", quota.parse_slave)
             for resource in SLAVE_RESOURCES}
    if not any(found.values()) and (slave := node.parsed(kind, target, "quota_slave/info", quota.parse_slave)):
        found[slave.resource] = slave
    yield from ((resource, slave) for resource, slave in found.items() if slave is not None and resource)


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
    "quota_slave", "whether targets enforce quotas", (CONNECTED, ENFORCED, UP_TO_DATE), stateless(collect_quota_slave))
