r"""Splits the exposition of a node into series and values.

The series of a node hardly ever change, only the values do. They are therefore examined once, as a :class:`Layout`;
while the text before the values stays the same, a scrape costs one split of each line and one conversion.

>>> layouts = Layouts()
>>> scrape = layouts.parse(b'# TYPE lustre_x_total counter\nlustre_x_total{fs="a"} 5\n')
>>> scrape.layout.names, scrape.counters
((b'lustre_x_total{fs="a"}',), (5,))
>>> layouts.parse(b'# TYPE lustre_x_total counter\nlustre_x_total{fs="a"} 7\n', scrape.layout).layout is scrape.layout
True
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isnan
from operator import itemgetter, sub
from sys import intern
from typing import NamedTuple

from tierd.gather.rules import JOB_FAMILIES, JOB_INFO, JOBID, Rule, is_gathered, labels_removed, rule_of
from tierd.sense.exposition import bucket_bound, excerpt, labels_of

Number = int | float
MAX_SERIES = 500_000
"""Limit on the series of one node."""
MAX_LINE_BYTES = 8192
_KEY = re.compile(rb"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?")
_TYPE = re.compile(r"# TYPE (\S+) (counter|gauge|histogram|summary|untyped)")
_HELP = re.compile(r"# HELP (\S+) (.*)")
_PART = re.compile(r"(.*)_(bucket|sum|count)")
START = "process_start_time_seconds"
SUCCESS = "lustre_exporter_collector_success"


@dataclass(frozen=True, slots=True)
class Family:
    """A family of metrics as the node describes it."""

    name: str
    kind: str
    """``counter``, ``gauge`` or ``histogram``."""
    help: str


class Slot(NamedTuple):
    """Where the value of one line goes."""

    family: str
    part: str
    """``bucket`` or ``sum`` of a histogram; "" otherwise."""
    labels: bytes
    """Text of the labels without those that name the node, without ``le`` and ``jobid``."""
    upper: float
    """Upper bound of a bucket, not cumulative; 0 otherwise."""
    job: str | None
    """Value of the label ``jobid``; None without that label."""
    by_job: bool
    """Whether the series is split by the job of its node."""


class Layout:
    """The series of an exposition in the order of its lines, and where each value goes."""

    __slots__ = ("buckets", "counter_slots", "families", "gauge_places", "gauges", "has_jobs", "job", "keys", "lower",
                 "names", "plain", "start", "success", "units", "upper")

    def __init__(self, keys: Sequence[bytes], heads: dict[str, Family], share: Callable[[Slot], Slot]) -> None:
        """Raises ValueError for series that are not valid, or that appear twice."""
        self.keys = keys
        """Text before the value of each line with a sample."""
        self.families: dict[str, Family] = {}
        self.gauges: list[tuple[int, Slot, Rule]] = []
        """Position in the text, place and rule of each gauge."""
        self.start: int | None = None
        """Position of the start time of the process."""
        self.success: list[int] = []
        """Positions of the state of each collector."""
        self.job = ""
        """The job that the node names; "" without one."""
        if len(keys) > MAX_SERIES:
            raise ValueError(f"more than {MAX_SERIES} series")
        if len(set(keys)) < len(keys):
            raise ValueError("a series appears twice")
        plain: list[tuple[int, Slot, object]] = []
        buckets: dict[tuple[str, bytes], list[tuple[float, int, Slot]]] = {}
        for position, key in enumerate(keys):
            self._place(position, key, heads, plain, buckets, share)
        self._arrange(plain, buckets)

    def _place(self, position: int, key: bytes, heads: dict[str, Family], plain: list[tuple[int, Slot, object]],
               buckets: dict[tuple[str, bytes], list[tuple[float, int, Slot]]], share: Callable[[Slot], Slot]) -> None:
        match = _KEY.fullmatch(key)
        if match is None or len(key) > MAX_LINE_BYTES:
            raise ValueError(f"not a sample, or a sample with a time: {excerpt(key)}")
        name = match[1].decode("ascii")
        if not name.startswith("lustre_"):
            if name == START:
                self.start = position
            return
        head, part = heads.get(name), ""
        if head is None and (split := _PART.fullmatch(name)) is not None:
            head, part = heads.get(split[1]), split[2]
            if head is not None and head.kind != "histogram":
                head = None
        if head is None or head.kind not in {"counter", "gauge", "histogram"} or not is_gathered(head.name):
            return
        rule = rule_of(name) if head.kind == "gauge" else Rule.SUM
        if rule is Rule.DROP:
            return
        labels = dict(labels_of(match[2] or b""))
        if name == JOB_INFO:
            self.job = labels.get(JOBID, "")
            return
        if name == SUCCESS:
            self.success.append(position)
        upper = bucket_bound(labels.pop("le", "nan")) if part == "bucket" else 0.0
        job = labels.pop(JOBID, None)
        node_only = labels_removed(name)
        text = label_text({label: value for label, value in labels.items() if label not in node_only})
        slot = share(Slot(intern(head.name), part, text, upper, job, job is None and head.name in JOB_FAMILIES))
        self.families[head.name] = head
        whole = head.name, label_text({**labels, JOBID: job or ""})
        if head.kind == "gauge":
            self.gauges.append((position, slot, rule))
        elif part == "bucket":
            buckets.setdefault(whole, []).append((upper, position, slot))
        elif part != "count":  # the buckets give the count
            plain.append((position, slot, whole if part else position))

    def _arrange(self, plain: list[tuple[int, Slot, object]],
                 buckets: dict[tuple[str, bytes], list[tuple[float, int, Slot]]]) -> None:
        """Order the counters: plain ones, then the buckets of each histogram from the lowest."""
        units: list[object] = [unit for _, _, unit in plain]
        slots = [slot for _, slot, _ in plain]
        self.plain = tuple(position for position, _, _ in plain)
        upper: list[int] = []
        lower: list[int] = []
        self.buckets: dict[tuple[str, bytes], tuple[tuple[float, int], ...]] = {}
        """Upper bound and number among the counters of each bucket, by histogram."""
        for whole, rows in buckets.items():
            rows.sort(key=itemgetter(0))
            self.buckets[whole] = tuple((bound, len(slots) + number) for number, (bound, _, _) in enumerate(rows))
            if rows[-1][0] != inf:
                raise ValueError(f"{whole[0]}: a histogram without the bucket +Inf")
            below = len(self.keys)  # the position of a zero behind all values
            for _, position, slot in rows:
                upper.append(position)
                lower.append(below)
                below = position
                slots.append(slot)
                units.append(whole)
        self.upper, self.lower = tuple(upper), tuple(lower)
        self.counter_slots = tuple(slots)
        self.has_jobs = any(slot.job for slot in slots)
        """Whether a counter has the label ``jobid``."""
        numbers: dict[object, int] = {}
        self.units = tuple(numbers.setdefault(unit, len(numbers)) for unit in units)
        """For each counter the number of its unit: the parts of a histogram are reset together."""
        self.names = tuple(self.keys[position] for position in (*self.plain, *upper))
        """Text of each counter in the exposition."""

    def counters(self, values: Sequence[Number]) -> tuple[Number, ...]:
        """The counters of a scrape; buckets are not cumulative. Raises ValueError for an impossible value."""
        with_zero = [*values, 0]
        found = (*_pick(self.plain, values),
                 *map(sub, _pick(self.upper, with_zero), _pick(self.lower, with_zero)))
        if found and not (min(found) >= 0 and sum(found) < inf):
            for name, value in zip(self.names, found, strict=True):
                if not 0 <= value < inf:
                    raise ValueError(f"impossible value of {excerpt(name, 200)}: {value}")
        return found


def _pick(positions: tuple[int, ...], values: Sequence[Number]) -> Sequence[Number]:
    if len(positions) > 1:
        found: Sequence[Number] = itemgetter(*positions)(values)
        return found
    return [values[position] for position in positions]


def label_text(labels: dict[str, str]) -> bytes:
    r"""Text of labels between the braces.

    >>> label_text({"a": 'x"\n', "b": ""})
    b'a="x\\"\\n",b=""'
    """
    return b",".join(b'%b="%b"' % (name.encode(), _escaped(value)) for name, value in labels.items())


def _escaped(value: str) -> bytes:
    text = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return text.encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer of a node."""

    layout: Layout
    counters: tuple[Number, ...]
    gauges: tuple[Number, ...]
    """In the order of ``Layout.gauges``."""
    complete: bool
    """Whether every collector of the exporter succeeded."""
    start: Number | None
    """When the exporter's process started, epoch seconds; None if unknown."""


class Layouts:
    """The layouts of all nodes. Nodes share layouts and the texts of their series."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._layouts: dict[tuple[bytes, ...], Layout] = {}
        self._texts: dict[bytes, bytes] = {}
        self._slots: dict[Slot, Slot] = {}

    def parse(self, body: bytes, before: Layout | None = None) -> Scrape:
        """Split an exposition. ``before`` is the node's last layout. Raises ValueError for anything invalid."""
        lines = body.split(b"\n")
        if lines.pop():
            raise ValueError("the answer is cut short: its last line has no end")
        rows = [line.rpartition(b" ") for line in lines if line and line[0] != 35]
        keys = [row[0] for row in rows]
        layout = before if before is not None and keys == before.keys else self._layout(keys, lines)
        try:
            values: list[Number] = [int(text) if text.isdigit() else float(text) for _, _, text in rows]
        except ValueError as error:
            raise ValueError(f"not a number: {excerpt(str(error).encode())}") from None
        gauges = tuple(values[position] for position, _, _ in layout.gauges)
        return Scrape(layout, layout.counters(values), gauges, all(values[position] for position in layout.success),
                      None if layout.start is None else values[layout.start])

    def _layout(self, keys: list[bytes], lines: list[bytes]) -> Layout:
        with self._lock:
            found = self._layouts.get(tuple(keys))
            if found is None:
                if not any(key.startswith(b"lustre_") for key in keys):
                    raise ValueError("not an exposition of lustre-exporter")
                texts, slots = self._texts.setdefault, self._slots.setdefault
                found = Layout([texts(key, key) for key in keys], heads_of(lines), lambda slot: slots(slot, slot))
                self._layouts[tuple(found.keys)] = found
            return found

    def keep(self, used: Iterable[Layout]) -> None:
        """Forget layouts that no node has any more, and their texts."""
        with self._lock:
            kept = {id(layout) for layout in used}
            if len(kept) == len(self._layouts):
                return
            self._layouts = {shape: layout for shape, layout in self._layouts.items() if id(layout) in kept}
            layouts = self._layouts.values()
            self._texts = {key: key for layout in layouts for key in layout.keys}
            self._slots = {slot: slot for layout in layouts for slot in layout.counter_slots}


def heads_of(lines: Iterable[bytes]) -> dict[str, Family]:
    """The families that an exposition describes. Raises ValueError if it gives one two types."""
    kinds: dict[str, str] = {}
    helps: dict[str, str] = {}
    for line in lines:
        if line[:1] == b"#":
            text = line.decode("utf-8", "replace")
            if (match := _TYPE.fullmatch(text)) is not None:
                if kinds.setdefault(match[1], match[2]) != match[2]:
                    raise ValueError(f"{match[1][:200]} has two types")
            elif (match := _HELP.fullmatch(text)) is not None:
                helps[match[1]] = match[2]
    return {name: Family(name, kind, helps.get(name, "")) for name, kind in kinds.items()}


def is_number(value: Number) -> bool:
    """Whether a gauge has a value. NaN has none."""
    return not isnan(value)
