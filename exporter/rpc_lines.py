"""``rpc_stats`` of devices that are shown one by one."""

from __future__ import annotations

from exporter import printing
from exporter.bounds import cumulative
from exporter.families import Histogram
from exporter.forms import RpcForm, rpc_forms
from exporter.rpcs import RpcFamilies, directions
from exporter.sources import Rendered, SampleLines
from lustre.formats import rpc_stats
from lustre.formats.outline import Forms


class RpcRenderer:
    """Makes renderers for devices whose histograms are shown one by one."""

    def __init__(self, families: RpcFamilies) -> None:
        self._families = families
        self._forms = rpc_forms(families)

    def __call__(self, labels: bytes) -> RpcsOfDevice:
        """The renderer of the device with these labels."""
        return RpcsOfDevice(self._families, self._forms, labels)


class RpcsOfDevice:
    """Renders one device's ``rpc_stats``; keeps a template per family until it gets another bucket."""

    __slots__ = ("_families", "_form", "_forms", "_gauges", "_labels", "_printed", "_templates")

    def __init__(self, families: RpcFamilies, forms: Forms[RpcForm], labels: bytes) -> None:
        self._families = families
        self._forms = forms
        self._labels = labels
        self._form: RpcForm | None = None
        self._printed: tuple[bytes, ...] = ()
        """Templates of the form."""
        self._gauges = SampleLines(labels)
        self._templates: dict[Histogram, tuple[tuple[float, ...], int, bytes]] = {}

    def __call__(self, data: bytes) -> Rendered:
        """Finished lines of one reading."""
        found = self._forms.read(data, self._form) if printing.fits(self._labels) else None
        if found is None:
            return self._of_words(data)
        form, numbers, _ = found
        if form is not self._form:
            self._form, self._printed = form, form.templates(self._labels)
        return Rendered(form.printed(self._printed, numbers), 0)

    def _of_words(self, data: bytes) -> Rendered:
        rpcs = rpc_stats.parse(data)
        chunks = list(self._gauges.lines(list(self._families.gauges(rpcs))))
        for family, bounds, columns in self._families.tables(rpcs):
            bounds = family.whole(bounds)  # noqa: PLW2901 - the table continued
            known, width, template = self._templates.get(family, ((), 0, b""))
            if (known is not bounds and known != bounds) or width != len(columns):
                template = b"".join([
                    family.buckets_template(self._labels + extra, bounds) for extra in directions(columns)
                ])  # fmt: skip
                self._templates[family] = bounds, len(columns), template
            counted = [count for column in columns for count in cumulative(bounds, column)]
            chunks.append((family, template % (*counted,)))
        return Rendered(tuple(chunks), rpcs.skipped)
