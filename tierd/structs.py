"""Structs: immutable objects with named values, for answers of the control socket and rows of the journal.

They are used like frozen dataclasses. A dataclass compiles its methods at import, and all answers together took more
processor time than three starts of Python, in each ``tierctl status`` on a loaded node. A struct compiles nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

TYPE_CHECKING = False  # importing typing takes as long as all structs
if TYPE_CHECKING:
    from typing import Any, ClassVar, Never, Self, dataclass_transform
else:
    def dataclass_transform(**_: object) -> object:
        """As in typing."""
        return lambda cls: cls

EMPTY: Mapping[str, Any] = MappingProxyType({})
"""Default of a field with a mapping."""


@dataclass_transform(frozen_default=True)
class Struct:
    """The annotations of a subclass are its fields, after those of its base class. A value is a default."""

    field_types: ClassVar[Mapping[str, str]] = EMPTY
    """The annotation of each field."""
    json_names: ClassVar[Mapping[str, str]] = EMPTY
    """JSON keys of fields, where they differ from the name."""
    omitted: ClassVar[frozenset[str]] = frozenset()
    """Fields that are left out of the JSON where they have their default."""

    def __init_subclass__(cls, *, kw_only: bool = False, json_names: Mapping[str, str] = EMPTY,
                          omitted: Collection[str] = ()) -> None:
        """``kw_only`` is for the type checker: all fields are given by name."""
        cls.field_types = {**cls.field_types, **vars(cls).get("__annotations__", EMPTY)}
        if json_names:
            cls.json_names = {**cls.json_names, **json_names}
        if omitted:
            cls.omitted = cls.omitted.union(omitted)

    def __init__(self, *values: object, **named: object) -> None:
        """Raises TypeError for a missing, surplus or unknown value."""
        cls, names = type(self), self.field_types
        given = {**dict(zip(names, values, strict=False)), **named}
        fields = {name: given[name] if name in given else getattr(cls, name) for name in names
                  if name in given or hasattr(cls, name)}
        if len(fields) < len(names) or len(values) + len(named) > len(given) or given.keys() - fields.keys():
            raise TypeError(f"{cls.__name__} has the fields {', '.join(names)}")
        vars(self).update(fields)

    def __setattr__(self, name: str, value: object) -> Never:
        """Raise AttributeError: a struct does not change."""
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        """Whether both are of the same class, with the same values."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Raises TypeError if a value has no hash, as mappings have none."""
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        """The class with all values."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @classmethod
    def of(cls, base: Struct, **more: object) -> Self:
        """A struct with the values of another one, and some more or others."""
        return cls(**{**vars(base), **more})

    def replaced(self, **values: object) -> Self:
        """The same struct with some other values."""
        return self.of(self, **values)
