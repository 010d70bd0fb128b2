"""Connections to targets, shown per target or summed by mount and pool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress
from operator import itemgetter
from typing import Generic, TypeVar

from exporter import templates
from exporter.connection_families import ClientFamilies, ConnectionFamilies, Sample, client_families
from exporter.counters import StatsPlan
from exporter.exposition import Family, Gauge, MetricsPage, label_text
from exporter.forms import RpcForm, StatsForm, rpc_forms
from exporter.hanging import PassState
from exporter.mounts import ClientDevice
from exporter.node import Node, NodeSnapshot
from exporter.pools import PoolMembership
from exporter.rpc_stats import RpcFamilies, directions
from exporter.sources import Columns, Lines, Rendered, Source, sample_lines, stats_renderer
from exporter.templates import Row
from exporter.totals import (
    Contribution,
    G,
    MountPool,
    SeriesKey,
    SummedParameter,
    import_contributions,
    stats_contributions,
)
from lustre.formats import compiled, import_, rpc_stats
from lustre.formats.import_ import Import
from lustre.formats.opcodes import Opcode
from lustre.formats.outline import Forms

T = TypeVar("T")


class ConnectionsByTarget:
    """Requests and state of each connection of one kind."""

    def __init__(self, kind: str, families: ConnectionFamilies, *, without_stats: bool = False) -> None:
        render = partial(_ImportOfDevice, families, import_templates(families))
        imports = Source(kind, "import", render, import_.KEYS)
        stats = () if without_stats else (Source(kind, "stats", stats_renderer(families.rule)),)
        self._sources = (*stats, imports)

    def collect(self, node: Node, page: MetricsPage, labelled: Iterable[tuple[str, bytes]]) -> None:
        for source in self._sources:
            source.collect(node, page, labelled)


class _ImportOfDevice:
    """Renders the ``import`` of one device."""

    __slots__ = ("_families", "_labels", "_shared")

    def __init__(self, families: ConnectionFamilies, shared: Callable[..., ImportTemplates], labels: bytes) -> None:
        self._shared = shared
        self._families = families
        self._labels = labels

    def __call__(self, data: bytes) -> Rendered:
        families, link = self._families, import_.parse(data)
        numbers = link.connection_attempts, link.timeouts, link.avg_waittime_usec
        shared = self._shared(link.state, link.target_version, *[number is not None for number in numbers])
        if shared is not None:
            known = tuple([number for number in numbers if number is not None])
            return Rendered(Row(shared[0], (shared[1], self._labels, known)), link.skipped)
        samples: list[Sample] = [*families.import_gauges(link), *families.import_counters(link)]
        return Rendered(sample_lines(self._labels, samples), link.skipped)


ImportTemplates = tuple[tuple[Family, ...], tuple[bytes, ...]] | None
"""The family and the packed template of each; None if they cannot be packed."""
_OPCODES = frozenset(b"".join(Opcode))


def import_templates(families: ConnectionFamilies) -> Callable[..., ImportTemplates]:

    @lru_cache(maxsize=256)
    def of(state: bytes | None, version: bytes | None, *known: bool) -> ImportTemplates:
        if {*(state or b""), *(version or b"")} & _OPCODES:  # a damaged text
            return None
        constant = Import(state, version, None, None, None, 0)
        counted = families.attempts, families.timeouts, families.average_wait
        shown = [(family, templates.of_samples(family, Opcode.LABELS, [b""])) for family in compress(counted, known)]
        shown += [(family, family.line(Opcode.LABELS + extra, value))
                  for family, extra, value in families.import_gauges(constant)]  # fmt: skip
        packed = templates.packed([template for _, template in shown])
        return None if packed is None else (tuple([family for family, _ in shown]), packed)

    return of


class ClientsByTarget:
    """All metrics of each connection of one kind of client."""

    def __init__(self, kind: str, families: ClientFamilies, *, without_stats: bool = False) -> None:
        self._kind = kind
        self._connections = ConnectionsByTarget(kind, families, without_stats=without_stats)
        self._rpcs = Source(kind, "rpc_stats", partial(_RpcsOfDevice, families.rpcs, rpc_forms(families.rpcs)))
        self._labels: Mapping[str, bytes] = {}
        self._labelled: list[tuple[str, bytes]] = []
        self._texts: list[bytes] = []
        self._limits = families.limits
        self._lines = [_NumberLines(family) for family in families.limits.values()]

    def collect(self, node: Node, page: MetricsPage, labels: Mapping[str, bytes], quiet: Container[str] = ()) -> None:
        """Show each client. ``labels`` has the label text by device. Quiet clients have sent no bulk RPC."""
        if labels is not self._labels:
            self._labels, self._labelled, self._texts = labels, [*labels.items()], [*labels.values()]
        self._connections.collect(node, page, self._labelled)
        self._rpcs.collect(node, page, self._labelled, quiet)
        numbers = node.numbers_of(self._kind, tuple(self._limits), labels)
        for one, values in zip(self._lines, numbers, strict=True):
            page.add(one.family, one.lines(self._texts, values))

    def busy(self) -> frozenset[str]:
        """Return the clients that had RPCs in flight or unsent pages at the last pass."""
        return self._rpcs.busy()


class _RpcsOfDevice:
    """Renders the ``rpc_stats`` of one device."""

    __slots__ = ("_families", "_form", "_forms", "_labels")

    def __init__(self, families: RpcFamilies, forms: Forms[RpcForm], labels: bytes) -> None:
        self._families = families
        self._forms = forms
        self._labels = labels
        self._form: RpcForm | None = None

    def __call__(self, data: bytes) -> Rendered:
        found = self._forms.read(data, self._form)
        if found is None:
            return self._of_words(data)
        form, numbers, _ = found
        self._form = form
        return Rendered(form.row(self._labels, numbers), 0, any(numbers[: len(form.gauges)]))

    def _of_words(self, data: bytes) -> Rendered:
        rpcs = rpc_stats.parse(data)
        gauges = list(self._families.gauges(rpcs))
        chunks = [*sample_lines(self._labels, gauges)]
        for family, bounds, columns in self._families.tables(rpcs):
            tables = zip(directions(columns), columns, strict=True)
            chunks.append((family, b"".join([family.buckets(self._labels + extra, bounds, column)
                                             for extra, column in tables])))  # fmt: skip
        return Rendered(tuple(chunks), rpcs.skipped, any(value for _, _, value in gauges))


class _NumberLines:
    """Makes the lines of one number of each connection."""

    def __init__(self, family: Gauge) -> None:
        self.family = family
        self._packed = templates.packed([templates.of_samples(family, Opcode.LABELS, [b""])])

    def lines(self, labels: list[bytes], values: list[int | None]) -> bytes:
        if self._packed is not None:
            return compiled.fill_numbers(self._packed[0], labels, values)
        lines = zip(labels, values, strict=True)
        return b"".join([self.family.line(label, value) for label, value in lines if value is not None])


class StatsLines:
    """Shows the requests of each connection, from the contributions to the sums."""

    def __init__(self) -> None:
        self._devices: list[tuple[str, bytes]] = []
        self._shown: list[Contribution | None] = []
        self._columns = Columns()

    def put(self, page: MetricsPage, labels: Mapping[str, bytes], read: Mapping[str, Contribution]) -> None:
        """Show each device that could be read. The lines of an unchanged device are reused."""
        devices = [*labels.items()]
        if devices != self._devices:
            self._devices, self._shown, self._columns = devices, [None] * len(devices), Columns()
            self._columns.move([None] * len(devices))
        for position, (device, text) in enumerate(devices):
            shown, contribution = self._shown[position], read.get(device)
            if contribution is None or contribution.plan is None:
                if shown is not None:
                    self._shown[position] = None
                    self._columns.put(position, ())
            elif shown is not contribution:
                self._shown[position] = contribution
                self._columns.put(position, _lines(text, contribution, contribution.plan))
        self._columns.show(page)


def _lines(labels: bytes, contribution: Contribution, plan: StatsPlan) -> Lines:
    if isinstance(contribution.form, StatsForm):
        return contribution.form.row(labels, tuple(contribution.values))
    return plan.lines(labels, contribution.values)


class ConnectionSums(Generic[G]):
    """Sums of requests and state over the connections of one kind."""

    def __init__(self, kind: str, families: ConnectionFamilies) -> None:
        self._average_wait = families.average_wait
        self._stats: SummedParameter[G] = SummedParameter(kind, "stats", stats_contributions(families.rule))
        self._imports: SummedParameter[G] = SummedParameter(
            kind, "import", import_contributions(families), import_.KEYS
        )

    def collect(self, node: Node, page: MetricsPage, groups: Mapping[str, G]) -> None:
        for summed in (self._stats, self._imports):
            summed.refresh(node, groups)
            summed.put(page, {self._average_wait: max})


OSC = client_families("osc", ("fs", "mount", "pool"), "object servers")


def group_of(client: ClientDevice, pool: str) -> MountPool:
    return MountPool(client.device.fsname, client.mount, pool)


def labels_of(client: ClientDevice, pool: str) -> bytes:
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
        self._known: dict[str, tuple[Contribution, object]] = {}
        """Contribution and bulk counters by device."""
        self._getters: dict[int, tuple[Sequence[object], Callable[[Sequence[int]], object]]] = {}
        """Functions that select the bulk counters, by the identity of the keys."""
        self._pass = 0

    def find(self, read: Mapping[str, Contribution], busy: Container[str]) -> frozenset[str]:
        """Return the quiet devices of this pass. ``busy`` has devices that had RPCs in flight or unsent pages."""
        self._pass += 1
        turn = self._pass % MAX_QUIET_PASSES
        quiet: list[str] = []
        known: dict[str, tuple[Contribution, object]] = {}
        for number, (device, contribution) in enumerate(read.items()):
            before = self._known.get(device)
            if before is not None and before[0] is contribution:
                known[device] = before
            else:
                counts = self._bulk(contribution.keys)(contribution.values)
                known[device] = contribution, counts
                if before is None or before[0].start != contribution.start or before[1] != counts:
                    continue
            if device not in busy and number % MAX_QUIET_PASSES != turn:
                quiet.append(device)
        self._known = known
        return frozenset(quiet)

    def _bulk(self, keys: Sequence[SeriesKey]) -> Callable[[Sequence[int]], object]:
        found = self._getters.get(id(keys))
        if found is None or found[0] is not keys:  # Python reuses the id of an object that is gone
            places = [place for place, key in enumerate(keys) if key[0] in BULK_BYTES or key[1] in BULK_OPERATIONS]
            found = self._getters[id(keys)] = keys, itemgetter(*places) if places else lambda _: ()
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
                if self._reader is node.state:  # another pass may read already
                    self._reader = None
                self._changed.notify_all()
        return self.stats
