"""Reads one parameter of many devices. The finished lines of a device with an unchanged text are reused."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exporter import templates
from exporter.counters import StatsPlanner, StatsRule
from exporter.exposition import Family, MetricsPage, usec_to_seconds
from exporter.forms import StatsForm, stats_forms
from exporter.node import Node
from lustre.formats import stats
from lustre.formats.compiled import mark_below_times
from lustre.formats.outline import Forms

Chunks = tuple[tuple[Family, bytes], ...]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The finished lines of one file, without empty chunks, and the number of skipped lines."""

    chunks: Chunks
    skipped: int
    busy: bool = False
    """Whether the file shows requests in progress, so that it may change at any time."""


Render = Callable[[bytes], Rendered]
"""Renders the file of one device. It may keep templates between calls."""


@dataclass(slots=True)
class _Reading:
    """The last reading of one device."""

    labels: bytes
    render: Render
    mark: int | None = None
    """Hash of the text, because thousands of texts would take megabytes."""
    rendered: Rendered = Rendered((), 0)


class Source:
    """All files of one parameter (``obdfilter.*.stats``)."""

    def __init__(
        self,
        kind: str,
        name: str,
        renderer: Callable[[bytes], Render],
        mark: Callable[[bytes], int] = mark_below_times,
    ) -> None:
        self._kind = kind
        self._name = name
        self._renderer = renderer
        self._mark = mark
        """``mark`` hashes the text without parts that always change."""
        self._readings: dict[str, _Reading] = {}

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
        kept: dict[str, _Reading] = {}
        labelled = dict(devices)
        for device, data in self._texts(node, labelled, quiet):
            labels = labelled[device]
            reading = self._readings.get(device)
            page.made += 1
            if data is None:
                assert reading is not None, "quiet devices were read before"
                kept[device] = reading
                page.reused += 1
                page.extend(reading.rendered.chunks)
                continue
            if reading is None or reading.labels != labels:
                reading = _Reading(labels, self._renderer(labels))
            mark = self._mark(data)
            if mark != reading.mark:
                reading.rendered = reading.render(data)
                reading.mark = mark
            else:
                page.reused += 1
            kept[device] = reading
            if reading.rendered.skipped:
                node.skipped(self._kind, self._name, reading.rendered.skipped)
            page.extend(reading.rendered.chunks)
        self._readings = kept

    def busy(self) -> frozenset[str]:
        """Return the devices with requests in progress at the last pass."""
        return frozenset([device for device, reading in self._readings.items() if reading.rendered.busy])

    def _texts(
        self, node: Node, labelled: Mapping[str, bytes], quiet: Container[str]
    ) -> Iterator[tuple[str, bytes | None]]:
        """Yield each device with its text, or with None for a quiet device."""
        known = {
            device
            for device, reading in self._readings.items()
            if device in quiet and labelled.get(device) == reading.labels
        }
        if not known:
            yield from node.read_each(self._kind, self._name, labelled)
            return
        texts = iter(node.read_each(self._kind, self._name, [device for device in labelled if device not in known]))
        following = next(texts, None)
        for device in labelled:
            if device in known:
                yield device, None
            elif following is not None and following[0] == device:
                yield following
                following = next(texts, None)


class SampleLines:
    """Renders the samples of one device, and caches the templates while the set of samples does not change."""

    __slots__ = ("_labels", "_of", "_templates")

    def __init__(self, labels: bytes) -> None:
        self._labels = labels
        self._of: list[tuple[Family, bytes]] = []
        self._templates: list[bytes] = []

    def lines(self, samples: Sequence[tuple[Family, bytes, int]]) -> Iterator[tuple[Family, bytes]]:
        """Yield finished lines. A sample is a family, further label text and a value (microseconds for seconds)."""
        of = [(family, extra) for family, extra, _ in samples]
        if of != self._of:
            self._of, self._templates = of, [family.template(self._labels, extra) for family, extra in of]
        for (family, _, value), template in zip(samples, self._templates, strict=True):
            digits = b"%d" % value
            yield family, template % (usec_to_seconds(digits) if family.unit == "seconds" else digits)


class StatsRenderer:
    """Makes the renderers of one ``stats`` parameter, which share plans."""

    def __init__(self, rule: StatsRule) -> None:
        self._planner = StatsPlanner(rule)
        self._forms = stats_forms(self._planner)

    def __call__(self, labels: bytes) -> Render:
        """Return the renderer of a device with these labels."""
        return _StatsOfDevice(self._planner, self._forms, labels)


class _StatsOfDevice:
    __slots__ = ("_form", "_forms", "_labels", "_plan", "_planner", "_templates")

    def __init__(self, planner: StatsPlanner, forms: Forms[StatsForm], labels: bytes) -> None:
        self._planner = planner
        self._forms = forms
        self._labels = labels
        self._form: StatsForm | None = None
        self._plan: object = None
        self._templates: tuple[bytes, ...] = ()

    def __call__(self, data: bytes) -> Rendered:
        found = self._forms.read(data, self._form) if templates.fits(self._labels) else None
        if found is not None:
            form, numbers, _ = found
            if form is not self._form:
                self._form, self._plan, self._templates = form, None, form.plan.printing_templates(self._labels)
            return Rendered(form.plan.printed(self._templates, numbers), form.plan.unknown)
        parsed = stats.parse(data)
        plan, columns = self._planner.plan(parsed)
        if plan is not self._plan:
            self._form, self._plan, self._templates = None, plan, plan.templates(self._labels)
        return Rendered(plan.fill(self._templates, plan.pick(columns)), parsed.skipped + plan.unknown)
