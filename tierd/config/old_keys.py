"""Keys that had another name in the version before: accepted for one release, each with a warning.

``most_x`` became ``max_x``, and ``least_x`` became ``min_x``. A table that moved is a mistake that says what to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_DETECTORS = {
    "cold_on_flash": ("least_files",),
    "hot_small_files": ("least_opens",),
    "imbalance": ("least_bytes_per_second", "least_operations_per_second"),
    "metadata_storm": ("least_seconds",),
    "outgrown_component": ("least_files",),
    "read_ahead": ("least_pages_per_second",),
    "rpc_size": ("least_bytes_per_second", "least_saved"),
    "rpcs_in_flight": ("least_rpcs_per_second", "most_at_work"),
    "shared_file_contention": ("least_bytes_per_second", "least_openers", "most_objects_per_target"),
    "small_random_io": ("least_rpcs_per_second",),
    "statahead_waste": ("least_misses", "least_started"),
    "striping": ("least_bytes_per_second", "least_files"),
}
OLD_KEYS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("benefit",): ("least_gain",),
    ("cold_to_disk",): ("least_bytes", "most_moves"),
    ("hot_files_to_flash",): ("most_moves",),
    ("sense", "exporter_access"): ("most_bytes",),
    ("sense", "prometheus", "access"): ("most_bytes",),
    ("small_files_to_flash",): ("most_moves",),
    ("small_files_to_flash", "sizing"): ("least_samples",),
    ("verify",): ("least_controls", "least_gain", "most_harm"),
    **{("detect", detector): keys for detector, keys in _DETECTORS.items()},
}
"""Old keys by table. A table of a scope has the name without ``scopes`` and the index."""

MOVED_TABLES: Mapping[tuple[str, ...], str] = {
    ("hot_files_to_flash", "data_on_mdt"): 'move its settings to [data_on_mdt], and write "data-on-mdt" into act.on in '
                                           "place of enabled = true",
}
"""What to do about tables that this version has in another place, because they mean more there."""

Location = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class OldKey:
    """One old key found in a file."""

    location: Location
    """With the old name."""
    both: bool
    """Whether the same table also has the new key, which is a mistake."""


def new_key(key: str) -> str:
    """The name of an old key in this version.

    >>> new_key("most_moves"), new_key("least_gain")
    ('max_moves', 'min_gain')
    """
    return f"max_{key.removeprefix('most_')}" if key.startswith("most_") else f"min_{key.removeprefix('least_')}"


def current_location(location: Sequence[int | str]) -> Location:
    """A location with the name of this version in place of an old one; others stay as they are.

    >>> current_location(("verify", "least_gain")), current_location(("limits", "least_gain"))
    (('verify', 'min_gain'), ('limits', 'least_gain'))
    >>> current_location(("scopes", 1, "small_files_to_flash", "most_moves"))
    ('scopes', 1, 'small_files_to_flash', 'max_moves')
    """
    names = location[2:] if location[:1] == ("scopes",) else location
    if len(names) > 1 and names[-1] in OLD_KEYS.get(tuple(map(str, names[:-1])), ()):
        return (*location[:-1], new_key(str(names[-1])))
    return tuple(location)


def moved_table(location: Sequence[int | str]) -> str:
    """What to do about a table of the version before; "" for others.

    >>> moved_table(("scopes", 0, "hot_files_to_flash", "data_on_mdt"))[:34]
    'move its settings to [data_on_mdt]'
    """
    names = location[2:] if location[:1] == ("scopes",) else location
    return MOVED_TABLES.get(tuple(map(str, names)), "")


def with_current_keys(values: Mapping[str, object]) -> tuple[dict[str, object], list[OldKey]]:
    """The values of one file under the names of this version, and which old keys it has.

    Where a table has both, the value of the new key is taken, and the old key is marked as a mistake.

    >>> with_current_keys({"verify": {"least_gain": 0.3}})
    ({'verify': {'min_gain': 0.3}}, [OldKey(location=('verify', 'least_gain'), both=False)])
    """
    found: list[OldKey] = []
    return dict(_renamed(values, (), found)), found


def _renamed(values: Mapping[str, object], location: Location, found: list[OldKey]) -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        here = (*location, key)
        current = str(current_location(here)[-1])
        if current != key:
            found.append(OldKey(here, current in values))
            if current in values:
                continue
        if isinstance(value, Mapping):
            yield current, dict(_renamed(value, here, found))
        elif here == ("scopes",) and isinstance(value, list):
            yield key, [dict(_renamed(scope, (*here, index), found)) if isinstance(scope, Mapping) else scope
                        for index, scope in enumerate(value)]
        else:
            yield current, value
