"""Numbers of a finding in words: what the name of each says of its unit decides how it is printed."""

from __future__ import annotations

from collections.abc import Callable

from tierd.text import percent

_ENDINGS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_second", lambda v: f"{v / 1e6:.1f} MB/s"),
    ("_per_second", lambda v: f"{v:.1f} a second"),
    ("bytes", lambda v: f"{v / 2**20:.2f} MiB"),
    ("_bytes_per_file", lambda v: f"{v / 2**20:.2f} MiB"),
    ("share", percent),
    ("seconds", lambda v: f"{v:.0f} s"),
    ("usec", lambda v: f"{v / 1000:.1f} ms"),
    ("usec_per_rpc", lambda v: f"{v / 1000:.1f} ms"),
    ("slowdown", lambda v: f"{v:.2f} times"),
)
_CUT = ("_bytes_per_second", "_per_second", "_bytes_per_file", "_bytes", "_seconds", "_usec")


def described(name: str, value: float) -> str:
    """A number of the evidence.

    >>> described("victim_bytes_per_second", 41.2e6), described("aggressor_read_share", 0.25)
    ('victim: 41.2 MB/s', 'aggressor read share: 25 %')
    >>> described("slowdown", 1.5), described("quiet_windows", 12), described("aggressor_bytes_per_file", 1 << 20)
    ('slowdown: 1.50 times', 'quiet windows: 12', 'aggressor, per file: 1.00 MiB')
    """
    if name == "learnt_windows":
        return f"of the quiet windows, learnt from Prometheus' history: {value:g}"
    shown = next((form(value) for ending, form in _ENDINGS if name.endswith(ending)), f"{value:g}")
    if name.endswith("_bytes_per_file"):
        return f"{name.removesuffix('_bytes_per_file').replace('_', ' ')}, per file: {shown}"
    cut = next((c for c in _CUT if name.endswith(c) and name != c.lstrip("_")), "")
    return f"{name.removesuffix(cut).replace('_', ' ')}: {shown}"
