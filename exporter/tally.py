"""The account of what a collector read and could not read, by parameter."""

from __future__ import annotations

from dataclasses import dataclass, field

from lustre.parameters import parse_device

NAMED = frozenset({("lov", "pools"), ("lod", "pools"), ("lod", "pool"), ("mgs", "live")})
"""Folders of devices whose entries an administrator named: pools, file systems."""


@dataclass(slots=True)
class Tally:
    """What one collector has read since the exporter started."""

    bytes_read: int = 0
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    """By (parameter, error)."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Lines by parameter."""

    def error(self, parameter: str, name: str) -> None:
        """One reading failed."""
        self.errors[parameter, name] = self.errors.get((parameter, name), 0) + 1

    def skip(self, parameter: str, lines: int) -> None:
        """So many lines were not understood."""
        self.skipped[parameter] = self.skipped.get(parameter, 0) + lines


def parameter_name(kind: str, name: str) -> str:
    """The parameter without its device and pool, as a label's value.

    >>> parameter_name("osc", "stats"), parameter_name("lov", "pools/a"), parameter_name("lod", "pool/a/spill_hit")
    ('osc.*.stats', 'lov.*.pools.*', 'lod.*.pool.*.spill_hit')
    >>> parameter_name("ost/OSS", "stats"), parameter_name("mdt/a-MDT0000/exports", "stats")
    ('ost.OSS.*.stats', 'mdt.*.exports.*.stats')
    """
    kinds = ["*" if parse_device(part).fsname else part for part in kind.split("/")]
    first, *rest = name.split("/")
    if (kind, first) in NAMED:
        rest[:1] = ["*"]
    return ".".join([*kinds, "*", first, *rest])
