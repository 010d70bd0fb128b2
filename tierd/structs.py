"""Structs: immutable objects with named values, for answers of the control socket and rows of the journal, and JSON.

They are used like frozen dataclasses. msgspec makes them without compiling methods, and converts them to JSON and back:
all answers together as dataclasses took more processor time than three starts of Python, in each ``tierctl status``.
JSON has no infinity and no NaN: a number that is not finite is null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

import msgspec

from lustre.fid import FID_BYTES, Fid

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")


def json_text(value: object, indent: int | None = None) -> str:
    """The JSON of a value.

    >>> json_text({"slowdown": float("inf"), "shares": [0.5, float("nan")]})
    '{"slowdown": null, "shares": [0.5, null]}'
    """
    return json.dumps(finite(value), indent=indent, allow_nan=False)


def finite(value: object) -> object:
    """The value with None in place of numbers that are not finite."""
    if isinstance(value, Mapping):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def packed(value: object) -> bytes:
    """A value as MessagePack, which has bytes: names, and FIDs."""
    return msgspec.msgpack.encode(value, enc_hook=bytes)


def unpacked(data: bytes, kind: type[T]) -> T:
    r"""The value of a type in MessagePack. Raises ValueError for anything else.

    >>> unpacked(packed({"names": [b"a\xff"]}), dict[str, list[bytes]])
    {'names': [b'a\xff']}
    """
    try:
        return msgspec.msgpack.decode(data, type=kind, dec_hook=_fid)
    except RecursionError as error:
        raise ValueError(f"nested too deeply: {error}") from error


def _fid(_: type, found: object) -> Fid:
    if not isinstance(found, bytes) or len(found) != FID_BYTES:
        raise ValueError("not a FID")
    return bytes.__new__(Fid, found)


def decoded(text: str, kind: type[T]) -> T:
    r"""The value of a type in JSON. Raises ValueError for anything else.

    It is read by ``json``, because msgspec refuses names with bytes that are not UTF-8, which :func:`json_text` writes.

    >>> decoded(json_text(["a\udcff"]), list[str])
    ['a\udcff']
    """
    return msgspec.convert(json.loads(text), kind)


class Struct(msgspec.Struct, frozen=True):
    """The base of all structs."""

    @classmethod
    def of(cls, base: object, **more: object) -> Self:
        """A struct with the attributes that an object has by the same names, and some more or others."""
        return cls(**{name: getattr(base, name) for name in cls.__struct_fields__ if hasattr(base, name)} | more)

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The struct in a JSON object. Raises ValueError for what is not such a struct."""
        return msgspec.convert(data, cls)

    def replaced(self, **values: object) -> Self:
        """The same struct with some other values."""
        return msgspec.structs.replace(self, **values)


class Advice(Struct, frozen=True):
    """A change that a person may make, and its expected effect. tierd never makes it."""

    command: str
    """Command to type: ``lctl set_param llite.lustre-*.max_read_ahead_mb=256``."""
    where: str
    """Nodes, or directories, that the command is for."""
    effect: str
    """Expected effect and cost."""


class SameFindingRow(Struct, frozen=True):
    """Another finding about the same problem, earlier or later."""

    id: int
    time: float
    acts: int
    """Number of acts that were done for it."""


class MessageRow(Struct, frozen=True):
    """A sentence that was logged about a finding."""

    time: float
    sentence: str
