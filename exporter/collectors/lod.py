"""How metadata targets of this node place files: ``lod.*``. The collector ``pools`` has pool spilling."""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.exposition import Gauge, MetricsPage, label_text
from exporter.node import Node, integer
from lustre.formats import df

LABELS = ("fs", "target")


def _gauge(name: str, text: str, parameter: str, unit: str = "", versions: str = "2.10+") -> Gauge:
    return Gauge(f"lustre_lod_{name}", text, LABELS, f"lod.*.{parameter}", unit, versions)


NUMBERS = {
    "numobd": _gauge("osts", "Object targets known to the metadata target.", "numobd"),
    "activeobd": _gauge("active_osts", "Object targets that the metadata target can use.", "activeobd"),
    "mdt_numobd": _gauge(
        "mdts", "Other metadata targets known to the metadata target.", "mdt_numobd", versions="2.13+"
    ),
    "mdt_activeobd": _gauge(
        "active_mdts", "Other metadata targets that the metadata target can use.", "mdt_activeobd", versions="2.13+"
    ),
    "stripesize": _gauge(
        "stripe_size_bytes", "Stripe size of files without a layout of their own.", "stripesize", "bytes"
    ),
}
STRIPES = _gauge(
    "stripes",
    "Stripe count of files without a layout of their own. -1 means one stripe on every target.",
    "stripecount",
)
RATIOS = {
    "qos_threshold_rr": _gauge(
        "qos_threshold_ratio",
        "Difference in free space between object targets up to which they are used round-robin.",
        "qos_threshold_rr",
        "ratio",
    ),
    "qos_prio_free": _gauge(
        "qos_free_weight_ratio",
        "Weight of free space in the choice of object targets when they are not used round-robin.",
        "qos_prio_free",
        "ratio",
    ),
}


def start(_: Context) -> Collect:
    """Start; no state is kept between passes."""

    def collect(node: Node, page: MetricsPage) -> None:
        for name, device in node.devices("lod"):
            if device.kind != "mdtlov":
                continue
            labels = label_text(fs=device.fsname, target=device.target)
            for parameter, family in NUMBERS.items():
                page.sample(family, labels, node.number("lod", name, parameter))
            page.sample(STRIPES, labels, node.number("lod", name, "stripecount", integer))
            for parameter, family in RATIOS.items():
                percent_ = node.number("lod", name, parameter, percent)
                page.sample(family, labels, None if percent_ is None else percent_ / 100)

    return collect


def percent(data: bytes) -> int | None:
    r"""A percentage. Some releases print it without the percent sign.

    >>> percent(b"90%\n"), percent(b"17\n"), percent(b"90%")
    (90, 17, None)
    """
    return df.integer(data.replace(b"%", b"", 1))


FAMILIES = (*NUMBERS.values(), STRIPES, *RATIOS.values())
COLLECTOR = Collector("lod", "how metadata targets of this node place files", FAMILIES, start)
