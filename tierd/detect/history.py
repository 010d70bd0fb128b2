"""The history of windows: the last minutes as measured, earlier windows summed to half minutes.

Negligible loads are dropped. With 5,000 jobs on 400 targets a window may hold 50,000 loads, most of them a thousandth
of their target's load. A job with such a load slows no other job, and tierd cannot measure whether it is slowed. Half
minutes are summed as the short windows arrive, so that no single cycle bears all the cost. Windows that are too old for
the profiles of every cycle are packed into arrays, which take a tenth of the memory. They lose the sizes of RPCs. The
newest half minutes keep them, because the other detectors make profiles from these.

>>> load = JobLoad("l-OST0001", "j.1", write_bytes=5e6, writes=5.0, sizes={1 << 20: 5.0})
>>> old = packed_loads({("l-OST0001", "j.1"): load})
>>> old["l-OST0001", "j.1"] == load._replace(sizes={}), len(old), old.get(("l-OST0001", "j.2"))
(True, 1, None)
>>> list(old.items()) == [(("l-OST0001", "j.1"), load._replace(sizes={}))], list(packed_loads({}).items())
(True, [])
>>> packed_loads({("l-OST0001", "j.1"): load}, with_sizes=True)["l-OST0001", "j.1"] == load
True
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping, Sequence, ValuesView
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain
from operator import itemgetter
from struct import Struct
from typing import Any, Generic, TypeVar

from tierd.detect.profile import ByKey, by_key, total
from tierd.model import NO_SIZES, JobLoad, NamespaceLoad, Window

Key = TypeVar("Key")
Value = TypeVar("Value")
_ROWS: list[int] = []
"""Shared int objects for row numbers, to save memory."""


class Packed(Mapping[Key, Value], Generic[Key, Value]):
    """A read-only mapping whose values are built from packed numbers."""

    __slots__ = ("_make", "_rows")

    def __init__(self, keys: Collection[Key], make: Callable[[Key, int], Value]) -> None:
        """``make`` builds the value of a key from its row number."""
        _ROWS.extend(range(len(_ROWS), len(keys)))
        self._rows = dict(zip(keys, _ROWS, strict=False))
        self._make = make

    def __getitem__(self, key: Key) -> Value:
        return self._make(key, self._rows[key])

    def get(self, key: Key, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """The value, or the default."""
        row = self._rows.get(key)
        return default if row is None else self._make(key, row)

    def items(self) -> ItemsView[Key, Value]:
        """All items, each built when it is reached."""
        return _Items(self)

    def values(self) -> ValuesView[Value]:
        """All values, each built when it is reached."""
        return _Values(self)

    def each(self) -> Iterator[tuple[Key, Value]]:
        """All items, faster than by looking up each key."""
        make = self._make
        for key, row in self._rows.items():
            yield key, make(key, row)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows


class _Items(ItemsView[Key, Value]):
    """Items of a packed mapping."""

    __slots__ = ()
    _mapping: Packed[Key, Value]

    def __iter__(self) -> Iterator[tuple[Key, Value]]:
        return self._mapping.each()


class _Values(ValuesView[Value]):
    """Values of a packed mapping."""

    __slots__ = ()
    _mapping: Packed[Any, Value]

    def __iter__(self) -> Iterator[Value]:
        return map(itemgetter(1), self._mapping.each())


_LOAD, _NAMES = Struct("6d"), Struct("5d")
_get_numbers = itemgetter(slice(2, 8))
_make_load = partial(tuple.__new__, JobLoad)
"""Makes a load from its fields in half the time."""


def packed_loads(loads: Mapping[tuple[str, str], JobLoad],
                 with_sizes: bool = False) -> Packed[tuple[str, str], JobLoad]:
    """Loads by target and job. Without ``with_sizes`` they lose the sizes of RPCs."""
    numbers = array("d", chain.from_iterable(map(_get_numbers, loads.values())))
    unpack, width = _LOAD.unpack_from, _LOAD.size
    if not with_sizes:
        return Packed(loads, lambda key, row: _make_load((*key, *unpack(numbers, row * width), NO_SIZES)))
    sizes_of = packed_sizes([load.sizes for load in loads.values()])
    return Packed(loads, lambda key, row: _make_load((*key, *unpack(numbers, row * width), sizes_of(row))))


def packed_sizes(each: Sequence[Mapping[int, float]]) -> Callable[[int], Mapping[int, float]]:
    """Numbers of RPCs by size, packed. Returns a function from the index in ``each`` to an equal mapping."""
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    uppers = [known.setdefault(names, names) for names in map(tuple, each)]
    counts = array("d", chain.from_iterable(sizes.values() for sizes in each))
    starts = array("q", accumulate(map(len, uppers), initial=0))

    def sizes_of(row: int) -> Mapping[int, float]:
        names = uppers[row]
        return dict(zip(names, counts[starts[row]:starts[row + 1]], strict=True)) if names else NO_SIZES

    return sizes_of


def packed_namespace(namespace: Mapping[str, NamespaceLoad]) -> Packed[str, NamespaceLoad]:
    """Metadata operations by job."""
    numbers = array("d")
    for load in namespace.values():
        numbers.extend((load.opens, load.closes, load.creates, load.unlinks, load.other_operations))
    unpack, width = _NAMES.unpack_from, _NAMES.size
    return Packed(namespace, lambda job, row: NamespaceLoad(job, *unpack(numbers, row * width)))


WHOLE_WINDOWS = 2
"""Number of the newest windows that are not packed: by default no detector makes profiles from more."""
WINDOWS_WITH_SIZES = 4
"""Number of the newest windows that keep the sizes of RPCs, for profiles of jobs."""


class CoarseWindows:
    """Sums short windows into long windows, and keeps the long windows."""

    def __init__(self, span_seconds: float = 30.0, history_seconds: float = 900.0, most_loads: float = float("inf"),
                 thin: Callable[[Window], Window] = lambda window: window) -> None:
        self._span_seconds = span_seconds
        self._history_seconds = history_seconds
        self._most_loads = most_loads
        self._thin = thin
        self._done: deque[Window] = deque()
        self._begin(0.0)

    def _begin(self, start: float) -> None:
        self._start = self._end = start
        self._loads: ByKey = by_key(())
        self._names: defaultdict[str, list[NamespaceLoad]] = defaultdict(list)
        self._spans: defaultdict[str, float] = defaultdict(float)

    @property
    def windows(self) -> Sequence[Window]:
        """Complete long windows, oldest first."""
        return tuple(self._done)

    def add(self, window: Window) -> bool:
        """Add a short window. Returns whether a long window is now complete. After a gap a new long window begins."""
        if window.start != self._end:
            self._begin(window.start)
        for key, load in window.loads.items():
            self._loads[key].append(load)
        for job, names in window.namespace.items():
            self._names[job].append(names)
        for target, seconds in window.spans.items():
            self._spans[target] += seconds
        self._end = window.end
        if self._end - self._start < self._span_seconds:
            return False
        loads = {key: total(each) for key, each in self._loads.items()}
        namespace = {job: total_namespace(parts) for job, parts in self._names.items()}
        self._done.append(self._thin(Window(self._start, self._end, loads, namespace, window.conditions,
                                            storage_work=window.storage_work, spans=dict(self._spans))))
        for age, with_sizes in ((WHOLE_WINDOWS, True), (WINDOWS_WITH_SIZES, False)):
            if len(self._done) > age:
                self._done[-age - 1] = packed(self._done[-age - 1], with_sizes)
        while len(self._done) > 1 and (self._done[0].end < self._end - self._history_seconds
                                       or sum(len(w.loads) for w in self._done) > self._most_loads):
            self._done.popleft()
        self._begin(self._end)
        return True


def packed(window: Window, with_sizes: bool = False) -> Window:
    """The window packed into arrays. Without ``with_sizes`` it loses the sizes of RPCs."""
    return replace(window, loads=packed_loads(window.loads, with_sizes), namespace=packed_namespace(window.namespace))


def total_namespace(parts: Sequence[NamespaceLoad]) -> NamespaceLoad:
    """Sum of one job's metadata operations."""
    return NamespaceLoad(parts[0].job, sum(p.opens for p in parts), sum(p.closes for p in parts),
                         sum(p.creates for p in parts), sum(p.unlinks for p in parts),
                         sum(p.other_operations for p in parts))


WHOLE_SECONDS = 300.0
"""Short windows are kept for this long if there are few loads."""
MIN_WHOLE_SECONDS = 30.0
"""Short windows are kept for at least this long."""
MAX_LOADS = 40_000
"""Maximum number of loads in all short windows."""
MAX_COARSE_LOADS = 100_000
"""Maximum number of loads in all long windows. With very many loads the history is shorter."""
CROWDED_JOBS = 16
"""A target with at most this many jobs keeps all its loads."""
MIN_SHARE = 0.02
"""Share of a crowded target's operations or bytes below which a load is dropped."""


class History:
    """Keeps windows without negligible loads: long windows, then short windows, oldest first."""

    def __init__(self, history_seconds: float, recent_seconds: float = 30.0) -> None:
        self._history_seconds = history_seconds
        self.recent_seconds = recent_seconds
        """Period from which profiles of jobs are made in every cycle. Its windows are not packed."""
        self._begin()

    def _begin(self) -> None:
        self.coarse = CoarseWindows(history_seconds=self._history_seconds, most_loads=MAX_COARSE_LOADS, thin=thinned)
        self._whole: deque[Window] = deque()
        self._loads = 0
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}
        self._begun: float | None = None
        self.learned: tuple[Window, ...] = ()
        """Windows from Prometheus' history, until tierd's own history is long enough."""

    @property
    def windows(self) -> Sequence[Window]:
        """All windows, oldest first."""
        begun = self._whole[0].start if self._whole else float("inf")
        return (*self.learned, *(w for w in self.coarse.windows if w.end <= begun), *self._whole)

    @property
    def recent(self) -> Sequence[Window]:
        """Windows of the last ``recent_seconds``, oldest first."""
        begun = self._whole[-1].end - self.recent_seconds if self._whole else 0.0
        return [window for window in self._whole if window.end > begun]

    def add(self, window: Window) -> bool:
        """Add a window. Returns whether a long window is now complete."""
        if self._whole and window.end <= self._whole[-1].end:
            self._begin()  # the clock went back: drop the history
        self._begun = window.start if self._begun is None else self._begun
        if window.end - self._begun > self._history_seconds:
            self.learned = ()
        window = self._with_known_keys(thinned(window))
        self._whole.append(window)
        self._loads += len(window.loads)
        self._pack_old()
        complete = self.coarse.add(window)
        if complete:
            self._forget(window.end)
            self._keys = {key: key for w in self.windows for key in w.loads}
        return complete

    def _pack_old(self) -> None:
        """Pack short windows that are no longer recent."""
        begun = self._whole[-1].end - self.recent_seconds
        for at in range(len(self._whole) - 1, -1, -1):
            window = self._whole[at]
            if isinstance(window.loads, Packed):
                break
            if window.end <= begun:
                self._whole[at] = packed(window)

    def _forget(self, now: float) -> None:
        """Remove short windows that long windows cover, if they are old or too many."""
        ends = {w.end for w in self.coarse.windows}
        while len(self._whole) > 1 and self._whole[0].end < now - MIN_WHOLE_SECONDS and self._is_due(now):
            while len(self._whole) > 1:
                gone = self._whole.popleft()
                self._loads -= len(gone.loads)
                if gone.end in ends:
                    break

    def _is_due(self, now: float) -> bool:
        return self._whole[0].end < now - min(WHOLE_SECONDS, self._history_seconds) or self._loads > MAX_LOADS

    def _with_known_keys(self, window: Window) -> Window:
        """The window with shared key objects, to save memory."""
        known = self._keys
        return replace(window, loads={known.setdefault(key, key): load for key, load in window.loads.items()})


def thinned(window: Window) -> Window:
    """The window without negligible loads on crowded targets."""
    at: defaultdict[str, list[JobLoad]] = defaultdict(list)
    for load in window.loads.values():
        at[load.target].append(load)
    if all(len(loads) <= CROWDED_JOBS for loads in at.values()):
        return window
    kept: dict[tuple[str, str], JobLoad] = {}
    for target, loads in at.items():
        operations = [load.reads + load.writes + load.other_operations for load in loads]
        moved = [load.read_bytes + load.write_bytes for load in loads]
        least_operations = least_bytes = 0.0
        if len(loads) > CROWDED_JOBS:
            least_operations, least_bytes = MIN_SHARE * sum(operations), MIN_SHARE * sum(moved)
        for load, own_operations, own_bytes in zip(loads, operations, moved, strict=True):
            if own_operations >= least_operations or (own_bytes >= least_bytes and own_bytes):
                kept[target, load.job] = load
    return replace(window, loads=kept, namespace=thinned_namespace(window.namespace, {job for _, job in kept}))


def thinned_namespace(namespace: Mapping[str, NamespaceLoad], jobs: Collection[str]) -> dict[str, NamespaceLoad]:
    """Metadata loads of these jobs, and of jobs with at least a thousandth of all metadata operations."""
    total = sum(load.operations for load in namespace.values())
    return {job: load for job, load in namespace.items() if job in jobs or load.operations >= 0.001 * total}
