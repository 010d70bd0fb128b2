"""The slim profile (``--profile=slim``): the families of a client that ten thousand clients can afford.

About 70 series a client, with the names and labels that the full profile uses, so that rules and dashboards work with
both: bytes, operations and times of each mount, bytes, requests and waits by pool, requests in flight, connections by
state, hits, misses and budget of read-ahead, and waste of statahead. It reads two files for each object target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from exporter.collector import Collect, Collector, Context
from exporter.collectors import llite, mdc, read_ahead
from exporter.collectors.health import CLIENT_JOB_COLLECTOR, VERSION_COLLECTOR
from exporter.connections import OSC, OscClients, group_of
from exporter.exposition import Gauge, MetricsPage, escape, label_text
from exporter.node import Node
from exporter.reading import Texts
from exporter.sources import Source, stats_renderer
from exporter.totals import MountPool, SummedParameter, stats_contributions
from lustre.formats import read_ahead_stats, statahead_stats
from lustre.formats.compiled import following
from lustre.formats.header import is_beyond
from lustre.formats.import_ import state_of

OPERATIONS = frozenset(
    {b"read", b"write", b"open", b"close", b"getattr", b"setattr", b"mknod", b"create", b"unlink", b"mkdir", b"rename",
     b"fsync", b"read_bytes", b"write_bytes"}
)  # fmt: skip
REQUESTS = frozenset({b"req_waittime", b"read_bytes", b"write_bytes"})
IN_FLIGHT = Gauge(
    "lustre_osc_requests_in_flight",
    "Requests of all kinds to object servers in flight now. Shown by the slim profile only.", ("fs", "mount", "pool"),
    "osc.*.import")
BUDGET = "max_read_ahead_mb"
_IMPORT_KEYS = (b"\n    state: ", b"\n    import_flags: ", b"\n       inflight: ")


def start(_: Context) -> Collect:
    groups = OscClients(group_of)
    mounts = Source("llite", "stats", stats_renderer(replace(llite.RULE, only=OPERATIONS)))
    requests: SummedParameter[MountPool] = SummedParameter(
        "osc", "stats", stats_contributions(replace(OSC.rule, only=REQUESTS))
    )
    imports = _Imports()
    metadata = Source("mdc", "stats", stats_renderer(replace(mdc.MDC.rule, only=frozenset({b"req_waittime"}))))

    def collect(node: Node, page: MetricsPage) -> None:
        mounts.collect(node, page, node.mounts())
        _read_ahead(node, page)
        by_device = groups.of(node)
        requests.refresh(node, by_device)
        requests.put(page)
        imports.collect(node, page, by_device)
        clients = [
            (name, label_text(fs=device.fsname, mount=mount, target=device.target))
            for name, device, mount in node.clients("mdc")
        ]
        metadata.collect(node, page, clients)

    return collect


class _Imports:
    """Connections by state, and requests in flight, of each group."""

    def __init__(self) -> None:
        self._texts = Texts("osc", "import", _IMPORT_KEYS)
        self._by_device: Mapping[str, MountPool] = {}
        self._links: list[tuple[bytes, int]] = []
        """State and requests in flight of each connection; an empty state if it is not known."""

    def collect(self, node: Node, page: MetricsPage, by_device: Mapping[str, MountPool]) -> None:
        if by_device is not self._by_device:
            moved = self._texts.set_devices([*by_device])
            self._links = [_UNKNOWN if at is None else self._links[at] for at in moved]
            self._by_device = by_device
        for position, data in node.changed(self._texts):
            self._links[position] = _UNKNOWN if data is None else _link(data)
        node.skipped("osc", "import", sum(self._texts.present) - sum([bool(state) for state, _ in self._links]))
        states: dict[tuple[MountPool, bytes], int] = {}
        in_flight: dict[MountPool, int] = {}
        for group, (state, requests) in zip(by_device.values(), self._links, strict=True):
            if state:
                states[group, state] = states.get((group, state), 0) + 1
                if requests >= 0:
                    in_flight[group] = in_flight.get(group, 0) + requests
        for (group, state), connections in states.items():
            page.sample(OSC.imports, b'%b,state="%b"' % (group.labels(), escape(state.strip())), connections)
        for group, number in in_flight.items():
            page.sample(IN_FLIGHT, group.labels(), number)


def _link(data: bytes) -> tuple[bytes, int]:
    state, flags, requests = following(data, _IMPORT_KEYS)
    return state_of(state, flags) or b"", int(requests) if requests.isdigit() and not is_beyond(requests) else -1


_UNKNOWN = b"", -1


def _read_ahead(node: Node, page: MetricsPage) -> None:
    for device, labels in node.mounts():
        if (parsed := node.parsed("llite", device, "read_ahead_stats", read_ahead_stats.parse)) is not None:
            counts = dict(zip(parsed.names, parsed.samples, strict=True))
            page.sample(read_ahead.HITS, labels, counts.get(b"hits"))
            page.sample(read_ahead.MISSES, labels, counts.get(b"misses"))
        if (statahead := node.parsed("llite", device, "statahead_stats", statahead_stats.parse)) is not None:
            page.sample(read_ahead.STATAHEAD_STARTED, labels, statahead.total)
            page.sample(read_ahead.STATAHEAD_WRONG, labels, statahead.wrong)
        budget = node.number("llite", device, BUDGET, read_ahead.parse_mebibytes)
        page.sample(read_ahead.SIZES[BUDGET], labels, budget)


_REQUESTS_OF = {
    kind: tuple([family for family in (*rule.byte_sums.values(), *rule.special[b"req_waittime"]) if family is not None])
    for kind, rule in (("osc", OSC.rule), ("mdc", mdc.MDC.rule))
}
FAMILIES = (
    *llite.RULE.families(), read_ahead.HITS, read_ahead.MISSES, read_ahead.STATAHEAD_STARTED,
    read_ahead.STATAHEAD_WRONG, read_ahead.SIZES[BUDGET], *_REQUESTS_OF["osc"], OSC.imports, IN_FLIGHT,
    *_REQUESTS_OF["mdc"],
)  # fmt: skip
COLLECTOR = Collector("slim", "the slim profile of a client", FAMILIES, start)
SLIM_COLLECTORS = (COLLECTOR, VERSION_COLLECTOR, CLIENT_JOB_COLLECTOR)
