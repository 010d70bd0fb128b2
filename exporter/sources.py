"""Reads one parameter of many devices. The finished lines of a device with an unchanged text are reused."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from exporter.counters import StatsPlanner, StatsRule
from exporter.exposition import Family, MetricsPage
from exporter.forms import StatsForm, stats_forms
from exporter.node import Node
from exporter.reading import BELOW_TIMES, Part, Texts
from exporter.templates import Row
from lustre.formats import compiled, stats
from lustre.formats.outline import Forms

Chunks = tuple[tuple[Family, bytes], ...]
Lines = Row | Chunks
"""The lines of one device: numbers that are printed with those of its neighbours, or finished lines."""


class Rendered(NamedTuple):
    """The lines of one file, and the number of skipped lines."""

    lines: Lines
    skipped: int
    busy: bool = False
    """Whether the file shows requests in progress, so that it may change at any time."""


Render = Callable[[bytes], Rendered]
"""Renders the file of one device. It may keep templates between calls."""


NOTHING = Rendered((), 0)


class Columns:
    """Lines of many devices. The finished lines of neighbours are joined, and reused while none of them changes."""

    def __init__(self) -> None:
        self._lines: list[Lines] = []
        """The lines of each device."""
        self._joined: list[Chunks] = []
        """The finished lines of each group of neighbours."""
        self._changed: set[int] = set()
        """Groups with a change since they were joined."""

    def move(self, positions: Sequence[int | None]) -> None:
        """Take the lines of each device from its previous position; None for a new device, which has no lines."""
        self._lines = [() if at is None else self._lines[at] for at in positions]
        groups = range(0, len(self._lines), NEIGHBOURS)
        self._joined = [() for _ in groups]
        self._changed = {*range(len(groups))}

    def put(self, position: int, lines: Lines) -> None:
        self._lines[position] = lines
        self._changed.add(position // NEIGHBOURS)

    def show(self, page: MetricsPage) -> None:
        for group in self._changed:
            begin = group * NEIGHBOURS
            self._joined[group] = joined(self._lines[begin : begin + NEIGHBOURS])
        self._changed.clear()
        for chunks in self._joined:
            page.extend(chunks)


NEIGHBOURS = 32
"""Number of devices whose lines are joined. Many cost less if nothing changes, few if one of them does."""


def joined(neighbours: Iterable[Lines]) -> Chunks:
    """Return the lines of some devices by family. Families without lines are left out."""
    present = [lines for lines in neighbours if lines]
    rows = [lines for lines in present if isinstance(lines, Row)]
    if rows and len(rows) == len(present) and all(row.families == rows[0].families for row in rows):
        return tuple(zip(rows[0].families, compiled.fill_columns([row for _, row in rows]), strict=True))
    found: dict[Family, list[bytes]] = {}
    for lines in present:
        for family, chunk in joined([lines]) if isinstance(lines, Row) else lines:
            found.setdefault(family, []).append(chunk)
    return tuple([(family, text) for family, chunks in found.items() if (text := b"".join(chunks))])


def paged(show: Callable[[MetricsPage, bytes, bytes], int]) -> Callable[[bytes], Render]:
    """Make renderers from a function that adds the samples of a text to a page and returns the skipped lines.

    It receives the page, the label text of the device, and the text.
    """

    def render(labels: bytes, data: bytes) -> Rendered:
        page = MetricsPage()
        skipped = show(page, labels, data)
        return Rendered(page.lines(), skipped)

    return lambda labels: partial(render, labels)


@dataclass(slots=True)
class _Device:
    """A device with its renderer, and the last reading without its lines."""

    labels: bytes
    render: Render
    skipped: int = 0
    busy: bool = False


class Source:
    """All files of one parameter (``obdfilter.*.stats``)."""

    def __init__(
        self, kind: str, name: str, renderer: Callable[[bytes], Render], part: Part = BELOW_TIMES
    ) -> None:
        """``part`` is the part of a text that the lines depend on. The rest always changes."""
        self._texts = Texts(kind, name, part)
        self._renderer = renderer
        self._given: list[tuple[str, bytes]] | None = None
        """The devices of the last pass, if they were a list, which is not changed then."""
        self._labelled: list[tuple[str, bytes]] = []
        self._devices: list[_Device] = []
        self._skipped = 0
        """Number of skipped lines of all devices."""
        self._columns = Columns()

    def collect(
        self,
        node: Node,
        page: MetricsPage,
        devices: Iterable[tuple[str, bytes]],
        quiet: Container[str] = (),
    ) -> None:
        """Read the file of each (device, label text). The chunks of an unchanged file are reused.

        Devices in ``quiet`` are not read: their files have not changed.
        """
        texts = self._texts
        if devices is not self._given:
            labelled = [*dict(devices).items()]
            if labelled != self._labelled:
                self._label(labelled)
            self._given = devices if isinstance(devices, list) else None
        changed = 0
        for position, data in node.changed(texts, quiet):
            device = self._devices[position]
            rendered = NOTHING if data is None else device.render(data)
            self._skipped += rendered.skipped - device.skipped
            device.skipped, device.busy = rendered.skipped, rendered.busy
            self._columns.put(position, rendered.lines)
            changed += data is not None
        node.skipped(texts.kind, texts.name, self._skipped)
        present = sum(texts.present)
        page.count_chunks(present, present - changed)
        self._columns.show(page)

    def _label(self, labelled: list[tuple[str, bytes]]) -> None:
        """Change the devices. A device with other labels counts as new."""
        moved: list[int | None] = []
        devices: list[_Device] = []
        for position, (at, (_, labels)) in enumerate(
            zip(self._texts.set_devices([device for device, _ in labelled]), labelled, strict=True)
        ):
            if at is not None and self._devices[at].labels == labels:
                moved.append(at)
                devices.append(self._devices[at])
            else:
                self._texts.forget(position)
                moved.append(None)
                devices.append(_Device(labels, self._renderer(labels)))
        self._labelled, self._devices = labelled, devices
        self._skipped = sum([device.skipped for device in devices])
        self._columns.move(moved)

    def busy(self) -> frozenset[str]:
        names = self._texts.devices
        return frozenset([name for name, device in zip(names, self._devices, strict=True) if device.busy])


def sample_lines(labels: bytes, samples: Iterable[tuple[Family, bytes, int]]) -> Chunks:
    """Return finished lines. A sample is a family, further label text and a value (microseconds for seconds)."""
    return tuple([(family, family.counted(labels + extra, value)) for family, extra, value in samples])


def stats_renderer(rule: StatsRule) -> Callable[[bytes], Render]:
    """Make renderers for the devices of one ``stats`` parameter, which share plans."""
    planner = StatsPlanner(rule)
    return partial(_StatsOfDevice, planner, stats_forms(planner))


class _StatsOfDevice:
    __slots__ = ("_form", "_forms", "_labels", "_planner")

    def __init__(self, planner: StatsPlanner, forms: Forms[StatsForm], labels: bytes) -> None:
        self._planner = planner
        self._forms = forms
        self._labels = labels
        self._form: StatsForm | None = None

    def __call__(self, data: bytes) -> Rendered:
        found = self._forms.read(data, self._form)
        if found is not None:
            self._form, numbers, _ = found
            return Rendered(self._form.row(self._labels, numbers), self._form.plan.unknown)
        parsed = stats.parse(data)
        plan, columns = self._planner.plan(parsed)
        return Rendered(plan.lines(self._labels, map(int, plan.pick(columns))), parsed.skipped + plan.unknown)
