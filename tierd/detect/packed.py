"""Loads of windows that are old, as bare numbers: a third of the memory; a load is made of them when it is asked for.

What is asked of old windows is what few jobs did on few targets. The sizes of RPCs are left out: what a job is like is
told from the newest windows.

>>> load = JobLoad("l-OST0001", "j.1", write_bytes=5e6, writes=5.0, sizes={1 << 20: 5.0})
>>> old = packed_loads({("l-OST0001", "j.1"): load})
>>> old["l-OST0001", "j.1"] == load._replace(sizes={}), len(old), old.get(("l-OST0001", "j.2"))
(True, 1, None)
>>> list(old.items()) == [(("l-OST0001", "j.1"), load._replace(sizes={}))], list(packed_loads({}).items())
(True, [])
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from tierd.model import NO_SIZES, JobLoad, NamespaceLoad

Key = TypeVar("Key")
Value = TypeVar("Value")


_ROWS: list[int] = []
"""One object for each number, however many windows have so many loads."""


class Packed(Mapping[Key, Value], Generic[Key, Value]):
    """Values of a few numbers each."""

    __slots__ = ("_make", "_numbers", "_rows", "_width")

    def __init__(self, keys: Collection[Key], numbers: array[float],
                 make: Callable[[Key, Sequence[float]], Value]) -> None:
        _ROWS.extend(range(len(_ROWS), len(keys)))
        self._rows = dict(zip(keys, _ROWS, strict=False))
        self._numbers = numbers
        self._width = len(numbers) // max(1, len(self._rows))
        self._make = make

    def __getitem__(self, key: Key) -> Value:
        at = self._rows[key] * self._width
        return self._make(key, self._numbers[at:at + self._width])

    def get(self, key: Key, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """The value, or the default."""
        return self[key] if key in self._rows else default

    def items(self) -> ItemsView[Key, Value]:
        """All of them, made one after the other."""
        return _Items(self)

    def each(self) -> Iterator[tuple[Key, Value]]:
        """The same; not looked up one by one."""
        make, numbers, width = self._make, self._numbers, self._width
        for key, at in zip(self._rows, range(0, len(numbers), width or 1), strict=False):
            yield key, make(key, numbers[at:at + width])

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows


class _Items(ItemsView[Key, Value]):
    """Of a packed mapping."""

    __slots__ = ()
    _mapping: Packed[Key, Value]

    def __iter__(self) -> Iterator[tuple[Key, Value]]:
        return self._mapping.each()


def packed_loads(loads: Mapping[tuple[str, str], JobLoad]) -> Packed[tuple[str, str], JobLoad]:
    """Loads by target and job, without the sizes of RPCs."""
    numbers = array("d")
    for load in loads.values():
        numbers.extend(load[2:8])
    return Packed(loads, numbers, lambda key, each: JobLoad._make((*key, *each, NO_SIZES)))


def packed_namespace(namespace: Mapping[str, NamespaceLoad]) -> Packed[str, NamespaceLoad]:
    """Metadata operations by job."""
    numbers = array("d")
    for load in namespace.values():
        numbers.extend((load.opens, load.closes, load.creates, load.unlinks, load.other_operations))
    return Packed(namespace, numbers, lambda job, each: NamespaceLoad(job, *each))
