"""How metadata targets of this node place files: ``lod.*``. The collector ``pools`` has pool spilling."""

from __future__ import annotations

from exporter.collector import Collector, stateless
from exporter.exposition import Gauge, MetricsPage, label_text
from exporter.node import Node
from exporter.reading import integer
from lustre.formats import df

LABELS = ("fs", "target")


def _gauge(name: str, text: str, parameter: str, versions: str = "2.10+") -> Gauge:
    return Gauge(f"lustre_lod_{name}", text, LABELS, f"lod.*.{parameter}", versions)


NUMBERS = {
    "numobd": _gauge("osts", "Object targets known to the metadata target.", "numobd"),
    "activeobd": _gauge("active_osts", "Object targets that the metadata target can use.", "activeobd"),
    "mdt_numobd": _gauge(
        "mdts", "Other metadata targets known to the metadata target.", "mdt_numobd", versions="2.13+"),
    "mdt_activeobd": _gauge(
        "active_mdts", "Other metadata targets that the metadata target can use.", "mdt_activeobd", versions="2.13+"),
    "stripesize": _gauge("stripe_size_bytes", "Stripe size of files without a layout of their own.", "stripesize"),
    "dom_stripesize": _gauge(
        "dom_stripe_size_bytes", "Maximum size of a component with data on the metadata target (DoM).",
        "dom_stripesize", "2.11+"),
}
DOM_NOW = _gauge(
    "dom_stripe_size_current_bytes",
    "Maximum size of a new component with data on the metadata target. Lustre lowers it while the target has little "
    "free space.", "dom_stripesize_cur_kb", "2.13+")
STRIPES = _gauge(
    "stripes", "Stripe count of files without a layout of their own. -1 means one stripe on every target.",
    "stripecount")
RATIOS = {
    "qos_threshold_rr": _gauge(
        "qos_threshold_ratio", "Difference in free space between object targets up to which they are used round-robin.",
        "qos_threshold_rr"),
    "qos_prio_free": _gauge(
        "qos_free_weight_ratio",
        "Weight of free space in the choice of object targets when they are not used round-robin.", "qos_prio_free"),
}


def _collect(node: Node, page: MetricsPage) -> None:
    for name, device in node.devices("lod"):
        if device.kind != "mdtlov":
            continue
        labels = label_text(fs=device.fsname, target=device.target)
        for parameter, family in NUMBERS.items():
            page.sample(family, labels, node.number("lod", name, parameter))
        kib = node.number("lod", name, "dom_stripesize_cur_kb")
        page.sample(DOM_NOW, labels, None if kib is None else kib * 1024)
        page.sample(STRIPES, labels, node.number("lod", name, "stripecount", integer))
        for parameter, family in RATIOS.items():
            percent = node.number("lod", name, parameter, parse_percent)
            page.sample(family, labels, None if percent is None else percent / 100)


def parse_percent(data: bytes) -> int | None:
    r"""Parse a percentage. Some releases print it without the percent sign.

    >>> parse_percent(b"90%\n"), parse_percent(b"17\n"), parse_percent(b"90%")
    (90, 17, None)
    """
    return df.integer(data.replace(b"%", b"", 1))


FAMILIES = (*NUMBERS.values(), DOM_NOW, STRIPES, *RATIOS.values())
COLLECTOR = Collector("lod", "how metadata targets of this node place files", FAMILIES, stateless(_collect))
