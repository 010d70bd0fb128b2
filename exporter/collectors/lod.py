"""How metadata targets of this node place files: ``lod.*``. The collector ``pools`` has pool spilling."""

from __future__ import annotations

from exporter.collector import Collector, all_of, reads_numbers
from exporter.exposition import label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.reading import integer
from lustre.formats import df

OF_LOD = FamilyMaker("lustre_lod", ("fs", "target"), "lod.*")
NUMBERS = OF_LOD.numbers(
    ("numobd", "osts", "Object targets known to the metadata target."),
    ("activeobd", "active_osts", "Object targets that the metadata target can use."),
    ("mdt_numobd", "mdts", "Other metadata targets known to the metadata target.", "2.13+"),
    ("mdt_activeobd", "active_mdts", "Other metadata targets that the metadata target can use.", "2.13+"),
    ("stripesize", "stripe_size_bytes", "Stripe size of files without a layout of their own."),
    ("dom_stripesize", "dom_stripe_size_bytes",
     "Maximum size of a component with data on the metadata target (DoM).", "2.11+"),
)
DOM_NOW = OF_LOD.numbers((
    "dom_stripesize_cur_kb", "dom_stripe_size_current_bytes",
    ("Maximum size of a new component with data on the metadata target. Lustre lowers it while the target has little "
     "free space."), "2.13+"))
STRIPES = OF_LOD.numbers((
    "stripecount", "stripes",
    "Stripe count of files without a layout of their own. -1 means one stripe on every target."))
RATIOS = OF_LOD.numbers(
    ("qos_threshold_rr", "qos_threshold_ratio",
     "Difference in free space between object targets up to which they are used round-robin."),
    ("qos_prio_free", "qos_free_weight_ratio",
     "Weight of free space in the choice of object targets when they are not used round-robin."),
)


def _metadata_targets(node: Node) -> list[tuple[str, bytes]]:
    return [(name, label_text(fs=device.fsname, target=device.target)) for name, device in node.devices("lod")
            if device.kind == "mdtlov"]


def parse_percent(data: bytes) -> int | None:
    r"""Parse a percentage. Some releases print it without the percent sign.

    >>> parse_percent(b"90%\n"), parse_percent(b"17\n"), parse_percent(b"90%")
    (90, 17, None)
    """
    return df.integer(data.replace(b"%", b"", 1))


FAMILIES = (*NUMBERS.values(), *DOM_NOW.values(), *STRIPES.values(), *RATIOS.values())
COLLECTOR = Collector("lod", "how metadata targets of this node place files", FAMILIES, all_of(
    reads_numbers("lod", NUMBERS, _metadata_targets),
    reads_numbers("lod", DOM_NOW, _metadata_targets, convert=lambda kib: kib * 1024),
    reads_numbers("lod", STRIPES, _metadata_targets, integer),
    reads_numbers("lod", RATIOS, _metadata_targets, parse_percent, convert=lambda percent: percent / 100)))
