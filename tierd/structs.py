"""Structs: immutable objects with named values, for answers of the control socket and rows of the journal.

They are used like frozen dataclasses. msgspec makes them without compiling methods, and converts them to JSON and back:
all answers together as dataclasses took more processor time than three starts of Python, in each ``tierctl status``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from typing import Self


class Struct(msgspec.Struct, frozen=True):
    """The base of all structs."""

    @classmethod
    def of(cls, base: object, **more: object) -> Self:
        """A struct with the attributes that an object has by the same names, and some more or others."""
        return cls(**{name: getattr(base, name) for name in cls.__struct_fields__ if hasattr(base, name)} | more)

    def replaced(self, **values: object) -> Self:
        """The same struct with some other values."""
        return msgspec.structs.replace(self, **values)
