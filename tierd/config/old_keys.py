"""Keys that had another name in the version before: accepted for one release, each with a warning.

``most_x`` became ``max_x``, and ``least_x`` became ``min_x``. A table that moved is a mistake that says what to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_DETECTORS = {
    "hot_small_files": ("least_opens",),
    "outgrown_component": ("least_files",),
    "read_ahead": ("least_pages_per_second",),
    "rpc_size": ("least_bytes_per_second",),
    "rpcs_in_flight": ("least_rpcs_per_second",),
    "shared_file_contention": ("least_openers",),
    "small_random_io": ("least_rpcs_per_second",),
    "striping": ("least_bytes_per_second",),
}
OLD_KEYS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("benefit",): ("least_gain",),
    ("cold_to_disk",): ("most_moves",),
    ("hot_files_to_flash",): ("most_moves",),
    ("sense", "exporter_access"): ("most_bytes",),
    ("sense", "prometheus", "access"): ("most_bytes",),
    ("sense", "robinhood"): ("most_files",),
    ("small_files_to_flash",): ("most_moves",),
    ("verify",): ("least_controls", "least_gain", "most_harm"),
    **{("detect", detector): keys for detector, keys in _DETECTORS.items()},
}
"""Old keys by table. A table of a scope has the name without ``scopes`` and the index."""

REMOVED: Mapping[tuple[str, ...], Sequence[str]] = {
    ("benefit",): ("first_effect", "first_weight"),
    ("cold_to_disk",): ("min_bytes",),
    ("data_on_mdt",): ("fill_seconds", "keep_free", "max_slowdown"),
    ("detect", "block_accelerator"): ("min_gain_share",),
    ("detect", "cold_on_flash"): ("min_files",),
    ("detect", "flash_pressure"): ("half", "leave", "recent_seconds"),
    ("detect", "hot_small_files"): ("leave_reads_per_second", "read_share", "recent_seconds", "reopened",
        "small_file_bytes"),
    ("detect", "imbalance"): ("classes", "leave_fill", "leave_load", "min_bytes_per_second",
        "min_operations_per_second", "recent_seconds"),
    ("detect", "metadata_bound"): ("busy_share", "leave_operation_usec", "leave_wait_usec", "one_job_share"),
    ("detect", "metadata_imbalance"): ("leave_fill", "leave_load"),
    ("detect", "metadata_storm"): ("leave", "min_seconds", "recent_seconds"),
    ("detect", "omni_path"): ("recent_seconds",),
    ("detect", "opened_for_writing"): ("leave", "recent_seconds", "written_share"),
    ("detect", "outgrown_component"): ("leave",),
    ("detect", "read_ahead"): ("discarded_share", "jumping_share", "leave", "limit_share", "recent_seconds"),
    ("detect", "rpc_size"): ("enter_fill", "full_share", "large_pages", "leave_fill", "min_saved", "recent_seconds"),
    ("detect", "rpcs_in_flight"): ("leave", "max_at_work", "recent_seconds"),
    ("detect", "shared_file_contention"): ("concentration", "leave", "max_objects_per_target", "min_bytes_per_second",
        "min_runs", "read_share", "recent_seconds"),
    ("detect", "small_random_io"): ("classes", "leave", "recent_seconds", "rpcs_per_file", "target_share"),
    ("detect", "statahead_waste"): ("leave", "min_hits", "min_misses", "min_started"),
    ("detect", "striping"): ("classes", "enter", "leave", "max_files_per_second", "min_files", "recent_seconds"),
    ("directory_striping",): ("gone_share", "judge_seconds", "min_gain"),
    ("hot_files_to_flash",): ("disk_bytes_per_second", "disk_read_usec", "flash_read_usec", "suffering_weight"),
    ("random_io_to_flash",): ("disk_bytes_per_second", "disk_operation_usec", "flash_operation_usec",
        "min_file_bytes", "stripes"),
    ("rebalance",): ("band", "max_bytes", "min_bytes", "rest_days", "retry_hours"),
    ("restripe",): ("bytes_per_second", "largest_small_bytes", "min_file_bytes", "min_opens", "reserve"),
    ("small_files_to_flash",): ("reaction_seconds", "read_share"),
    ("small_files_to_flash", "sizing"): ("min_samples", "split_share"),
}
"""Settings of the version before that tierd now decides itself, by table: each is ignored, with a warning."""

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
    both: bool = False
    """Whether the same table also has the new key, which is a mistake."""
    removed: bool = False
    """Whether there is no such setting any more."""


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
        removed = REMOVED.get(tuple(map(str, location[2:] if location[:1] == ("scopes",) else location)), ())
        if key in removed or new_key(key) in removed:
            found.append(OldKey(here, removed=True))
            continue
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
