"""Connections to targets, shown per target or summed by mount and pool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from exporter import templates
from exporter.connection_families import ClientFamilies, ConnectionFamilies, Sample, client_families
from exporter.counters import Chunks, StatsPlan
from exporter.exposition import Gauge, MetricsPage, label_text
from exporter.forms import RpcForm, rpc_forms
from exporter.node import ClientDevice, Node, NodeSnapshot, PassState, PoolMembership
from exporter.rpc_stats import RpcFamilies, directions
from exporter.sources import Render, Rendered, SampleLines, Source, StatsRenderer
from exporter.templates import fits
from exporter.totals import (
    Contribution,
    G,
    MountPool,
    SeriesKey,
    SummedParameter,
    import_contributions,
    stats_contributions,
)
from lustre.formats import import_, rpc_stats
from lustre.formats.compiled import hash_of
from lustre.formats.outline import Forms

T = TypeVar("T")


class ConnectionsByTarget:
    """Requests and state of each connection of one kind."""

    def __init__(self, kind: str, families: ConnectionFamilies, *, without_stats: bool = False) -> None:
        self._families = families
        self._forms = import_.import_forms()
        imports = Source(kind, "import", self._import, hash_of(import_.essence))
        stats = () if without_stats else (Source(kind, "stats", StatsRenderer(families.rule)),)
        self._sources = (*stats, imports)

    def collect(self, node: Node, page: MetricsPage, labelled: Iterable[tuple[str, bytes]]) -> None:
        """Show each (device, label text)."""
        for source in self._sources:
            source.collect(node, page, labelled)

    def _import(self, labels: bytes) -> Render:
        lines = SampleLines(labels)
        families = self._families
        form: import_.ImportForm | None = None

        def render(data: bytes) -> Rendered:
            nonlocal form
            link, form = import_.watched(data, self._forms, form)
            samples: list[Sample] = [*families.import_gauges(link), *families.import_counters(link)]
            return Rendered(tuple(lines.lines(samples)), link.skipped)

        return render


class ClientsByTarget:
    """All metrics of each connection of one kind of client."""

    def __init__(self, kind: str, families: ClientFamilies, *, without_stats: bool = False) -> None:
        self._kind = kind
        self._connections = ConnectionsByTarget(kind, families, without_stats=without_stats)
        self._rpcs = Source(kind, "rpc_stats", RpcRenderer(families.rpcs))
        self._limits = [(name, family, _NumberLines(family)) for name, family in families.limits.items()]

    def collect(
        self, node: Node, page: MetricsPage, labels: Mapping[str, bytes], quiet: Container[str] = ()
    ) -> None:
        """Show each client. ``labels`` has the label text by device. Quiet clients have sent no bulk RPC."""
        self._connections.collect(node, page, labels.items())
        self._rpcs.collect(node, page, labels.items(), quiet)
        for name, family, lines in self._limits:
            numbers = node.numbers(self._kind, name, labels)
            page.add(family, b"".join([lines.of(labels[device], value) for device, value in numbers]))

    def busy(self) -> frozenset[str]:
        """Return the clients that had RPCs in flight or unsent pages at the last pass."""
        return self._rpcs.busy()


class RpcRenderer:
    """Makes renderers for devices with their own histograms."""

    def __init__(self, families: RpcFamilies) -> None:
        self._families = families
        self._forms = rpc_forms(families)

    def __call__(self, labels: bytes) -> RpcsOfDevice:
        """Return the renderer of a device with these labels."""
        return RpcsOfDevice(self._families, self._forms, labels)


class RpcsOfDevice:
    """Renders the ``rpc_stats`` of one device, and caches the templates of its form."""

    __slots__ = ("_families", "_form", "_forms", "_gauges", "_labels", "_printed")

    def __init__(self, families: RpcFamilies, forms: Forms[RpcForm], labels: bytes) -> None:
        self._families = families
        self._forms = forms
        self._labels = labels
        self._form: RpcForm | None = None
        self._printed: tuple[bytes, ...] = ()
        """Templates of the form."""
        self._gauges = SampleLines(labels)

    def __call__(self, data: bytes) -> Rendered:
        """Return the finished lines of one reading."""
        found = self._forms.read(data, self._form) if templates.fits(self._labels) else None
        if found is None:
            return self._of_words(data)
        form, numbers, _ = found
        if form is not self._form:
            self._form, self._printed = form, form.templates(self._labels)
        return Rendered(form.printed(self._printed, numbers), 0, any(numbers[: len(form.gauges)]))

    def _of_words(self, data: bytes) -> Rendered:
        rpcs = rpc_stats.parse(data)
        gauges = list(self._families.gauges(rpcs))
        chunks = list(self._gauges.lines(gauges))
        for family, bounds, columns in self._families.tables(rpcs):
            tables = zip(directions(columns), columns, strict=True)
            chunks.append((family, b"".join([family.buckets(self._labels + extra, bounds, column)
                                             for extra, column in tables])))  # fmt: skip
        return Rendered(tuple(chunks), rpcs.skipped, any(value for _, _, value in gauges))


class _NumberLines:
    """Caches the lines of a number that rarely changes, by label text."""

    def __init__(self, family: Gauge) -> None:
        self._family = family
        self._lines: dict[bytes, tuple[int, bytes]] = {}

    def of(self, labels: bytes, value: int) -> bytes:
        """Return the finished line."""
        known = self._lines.get(labels)
        if known is None or known[0] != value:
            if len(self._lines) > MAX_LINES:
                self._lines.clear()
            known = self._lines[labels] = value, self._family.line(labels, value)
        return known[1]


MAX_LINES = 16384
"""Limit on cached lines, far above the number of connections of any node."""


class StatsLines:
    """Shows the requests of each connection, from the contributions to the sums."""

    def __init__(self) -> None:
        self._devices: dict[str, _Shown] = {}

    def put(self, page: MetricsPage, labels: Mapping[str, bytes], read: Mapping[str, Contribution]) -> None:
        """Show each device that could be read. The lines of an unchanged device are reused."""
        kept: dict[str, _Shown] = {}
        for device, contribution in read.items():
            if contribution.plan is not None and device in labels:
                shown = self._devices.get(device)
                if shown is None or shown.of is not contribution or shown.labels is not labels[device]:
                    shown = _shown(shown, labels[device], contribution, contribution.plan)
                kept[device] = shown
                page.extend(shown.chunks)
        self._devices = kept


class _Shown(NamedTuple):
    """The lines of a device, and their source."""

    of: Contribution
    plan: StatsPlan
    labels: bytes
    printed: bool
    """Whether the templates take numbers instead of digits."""
    templates: tuple[bytes, ...]
    chunks: Chunks


def _shown(before: _Shown | None, labels: bytes, contribution: Contribution, plan: StatsPlan) -> _Shown:
    printed = contribution.form is not None and fits(labels)
    same = before is not None and (before.plan, before.labels, before.printed) == (plan, labels, printed)
    if before is not None and same:
        templates = before.templates
    else:
        templates = plan.printing_templates(labels) if printed else plan.templates(labels)
    if printed:
        chunks = plan.printed(templates, tuple(contribution.values))
    else:
        chunks = plan.fill(templates, tuple([b"%d" % value for value in contribution.values]))
    return _Shown(contribution, plan, labels, printed, templates, chunks)


class ConnectionSums(Generic[G]):
    """Sums of requests and state over the connections of one kind."""

    def __init__(self, kind: str, families: ConnectionFamilies) -> None:
        self._average_wait = families.average_wait
        self._stats: SummedParameter[G] = SummedParameter(kind, "stats", stats_contributions(families.rule))
        self._imports: SummedParameter[G] = SummedParameter(
            kind, "import", import_contributions(families), hash_of(import_.essence)
        )

    def collect(self, node: Node, page: MetricsPage, groups: Mapping[str, G]) -> None:
        """Read every device, and show the sums by group."""
        for summed in (self._stats, self._imports):
            summed.refresh(node, groups)
            summed.put(page, {self._average_wait: max})


OSC = client_families("osc", ("fs", "mount", "pool"), "object servers")


def group_of(client: ClientDevice, pool: str) -> MountPool:
    """Return the group of an object storage client."""
    return MountPool(client.device.fsname, client.mount, pool)


def labels_of(client: ClientDevice, pool: str) -> bytes:
    """Return the label text of an object storage client with its own series."""
    return label_text(fs=client.device.fsname, mount=client.mount, target=client.device.target, pool=pool)


class OscClients(Generic[T]):
    """A value for each object storage client of this node's mounts, made from the client and its pools."""

    def __init__(self, make: Callable[[ClientDevice, str], T]) -> None:
        self._make = make
        self._made: tuple[tuple[ClientDevice, ...], PoolMembership, dict[str, T]] = (), PoolMembership({}, {}), {}

    def of(self, node: Node) -> Mapping[str, T]:
        """Return the values of this pass by device. If nothing changed, returns the same object as in the last pass."""
        clients, membership = node.clients("osc"), node.membership()
        if self._made[0] is not clients or self._made[1] is not membership:
            values = {
                client.name: self._make(client, membership.label(client.device.fsname, client.device.target))
                for client in clients
            }
            self._made = clients, membership, values
        return self._made[2]


WAIT_SECONDS = 0.1
"""Interval at which a collector checks whether the reader it waits for was abandoned."""


class QuietClients:
    """Finds the object storage clients that have sent no bulk RPC since their files were read.

    Their ``rpc_stats`` has not changed, because every bulk RPC changes bytes or operations in ``stats``, which is
    read in every pass. A client with RPCs in flight or unsent pages is not quiet. As a safeguard, for example for RPCs
    that a server never answers, each client is read at least once in ``MAX_QUIET_PASSES`` passes.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Contribution, tuple[int, ...]]] = {}
        self._places: dict[int, tuple[Sequence[object], tuple[int, ...]]] = {}
        """Positions of the bulk counters by the identity of the keys."""
        self._pass = 0

    def find(self, read: Mapping[str, Contribution], busy: Container[str]) -> frozenset[str]:
        """Return the quiet devices of this pass. ``busy`` has devices that had RPCs in flight or unsent pages."""
        self._pass += 1
        turn = self._pass % MAX_QUIET_PASSES
        quiet: list[str] = []
        known: dict[str, tuple[Contribution, tuple[int, ...]]] = {}
        for number, (device, contribution) in enumerate(read.items()):
            before = self._known.get(device)
            if before is not None and before[0] is contribution:
                known[device] = before
            else:
                counts = tuple([contribution.values[place] for place in self._bulk(contribution.keys)])
                known[device] = contribution, counts
                if before is None or before[0].start != contribution.start or before[1] != counts:
                    continue
            if device not in busy and number % MAX_QUIET_PASSES != turn:
                quiet.append(device)
        self._known = known
        return frozenset(quiet)

    def _bulk(self, keys: Sequence[SeriesKey]) -> tuple[int, ...]:
        found = self._places.get(id(keys))
        if found is None or found[0] is not keys:
            bulk = [place for place, key in enumerate(keys) if key[0] in BULK_BYTES or key[1] in BULK_OPERATIONS]
            places = tuple(bulk)
            found = self._places[id(keys)] = keys, places
        return found[1]


MAX_QUIET_PASSES = 8
BULK_BYTES = frozenset(OSC.rule.byte_sums.values())
BULK_OPERATIONS = frozenset({b',operation="ost_read"', b',operation="ost_write"'})


class OscTotals:
    """``osc.*.stats`` summed by group. The first collector that needs the sums reads them, once per pass."""

    def __init__(self) -> None:
        self.groups = OscClients(group_of)
        self._changed = threading.Condition()
        self._reader: PassState | None = None
        """The pass that reads now."""
        self._snapshot: NodeSnapshot | None = None
        self.stats: SummedParameter[MountPool] = SummedParameter("osc", "stats", stats_contributions(OSC.rule))

    def refresh(self, node: Node) -> SummedParameter[MountPool]:
        """Return the sums of this pass."""
        with self._changed:
            while self._reader is not None and not self._reader.abandoned:
                self._changed.wait(WAIT_SECONDS)  # a reader that is abandoned does not notify
            if self._snapshot is node.snapshot:
                return self.stats
            self._reader = node.state
        try:
            self.stats.refresh(node, self.groups.of(node))
            self._snapshot = node.snapshot
        finally:
            with self._changed:
                if self._reader is node.state:
                    self._reader = None
                self._changed.notify_all()
        return self.stats
