"""Text for people: names may hold any bytes, and are made safe for a terminal, a log and a page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from html import escape


def table(header: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> list[str]:
    r"""A table with two spaces between columns. Columns with an index in ``right`` are aligned to the right.

    >>> print(*table(("No.", "place"), [(7, "/a"), (12, "/proj")], right=[0]), sep="\n")
    No.  place
      7  /a
     12  /proj
    """
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return ["  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                      for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in cells]


def printable(words: str) -> str:
    r"""A sentence with what could disturb a terminal made visible.

    >>> print(printable("job \x1b[2J of uid 7"), printable("plain, ä"))
    job \x1b[2J of uid 7 plain, ä
    """
    return words if words.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)


def quoted(path: str) -> str:
    r"""A path as one word that cannot disturb a terminal.

    >>> print(quoted("/proj/run"), quoted("/proj/two words"), quoted("/proj/\x1b[2J\n"))
    /proj/run '/proj/two words' '/proj/\x1b[2J\n'
    """
    return path if path.isprintable() and " " not in path and path else ascii(path)


def first_names(names: Iterable[str], most: int = 3) -> str:
    """Names in a sentence, the many of them as a number.

    >>> first_names(["n1", "n2"]), first_names(f"n{n}" for n in range(40))
    ('n1, n2', 'n0, n1, n2 and 37 more')
    """
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(map(quoted, every[:most])) + more


def count_of(number: int, what: str, plural: str = "") -> str:
    """A number of things.

    >>> count_of(1, "finding"), count_of(0, "finding"), count_of(2, "directory", "directories")
    ('1 finding', '0 findings', '2 directories')
    """
    return f"{number} {what if number == 1 else plural or what + 's'}"


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.876)
    '88%'
    """
    return f"{100 * share:.0f}%"


def bytes_text(size_bytes: float) -> str:
    """Bytes for people, in powers of 1000, as disks are sold.

    >>> bytes_text(0), bytes_text(999_400), bytes_text(12_345_678), bytes_text(176.8e9), bytes_text(3.2e12)
    ('0 B', '999 kB', '12.3 MB', '177 GB', '3.2 TB')
    """
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB")):
        if abs(size_bytes) >= 10**power:
            value = size_bytes / 10**power
            return f"{value:.{0 if abs(value) >= 99.95 else 1}f} {unit}"
    return f"{size_bytes / 1000:.0f} kB" if abs(size_bytes) >= 1000 else f"{size_bytes:.0f} B"


def rate_text(bytes_per_second: float) -> str:
    """Bytes per second for people.

    >>> rate_text(44e6), rate_text(176_789.9e6)
    ('44.0 MB/s', '177 GB/s')
    """
    return f"{bytes_text(bytes_per_second)}/s"


def without_figures(sentence: str) -> str:
    """The sentence without its numbers and their units: two reports of one fact compare equal.

    >>> without_figures("pool 'flash' has 1.2 GB free") == without_figures("pool 'flash' has 900 MB free")
    True
    """
    return re.sub(r"\d+(\.\d+)?( [kMGT]?B\b)?", "#", sentence)


def shell_word(path: str) -> str:
    r"""A path quoted for bash.

    >>> print(shell_word("/proj/run"), shell_word("/two words"), shell_word("/it's"), shell_word("/\x1b\n\udcff'"))
    /proj/run '/two words' '/it'"'"'s' $'/\x1b\n\xff\''
    """
    if path.isprintable():
        return shlex.quote(path)
    known = {"\n": r"\n", "\t": r"\t", "\\": r"\\", "'": r"\'"}
    return "$'" + "".join(c if c.isprintable() and c not in known else known.get(c) or "".join(
        f"\\x{byte:02x}" for byte in c.encode("utf-8", "surrogateescape")) for c in path) + "'"


def html_safe(words: str) -> str:
    """Text of a page: names may hold anything, halves of characters too."""
    return escape(printable(words))


_UNITS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_bytes_per_second", rate_text),
    ("_per_second", lambda v: f"{v:.1f}/s"),
    ("bytes", lambda v: f"{v / 2**20:.2f} MiB"),
    ("_bytes_per_file", lambda v: f"{v / 2**20:.2f} MiB"),
    ("share", percent),
    ("seconds", lambda v: f"{v:.0f} s"),
    ("usec", lambda v: f"{v / 1000:.1f} ms"),
    ("usec_per_rpc", lambda v: f"{v / 1000:.1f} ms"),
    ("slowdown", lambda v: f"{v:.2f} times"),
)
_UNIT_SUFFIXES = ("_bytes_per_second", "_per_second", "_bytes_per_file", "_bytes", "_seconds", "_usec")


def evidence_text(name: str, value: float) -> str:
    """Format one value of the evidence.

    >>> evidence_text("victim_bytes_per_second", 41.2e6), evidence_text("aggressor_read_share", 0.25)
    ('victim: 41.2 MB/s', 'aggressor read share: 25%')
    >>> evidence_text("slowdown", 1.5), evidence_text("quiet_windows", 12)
    ('slowdown: 1.50 times', 'quiet windows: 12')
    >>> evidence_text("aggressor_bytes_per_file", 1 << 20)
    'aggressor, per file: 1.00 MiB'
    """
    if name == "learnt_windows":
        return f"quiet windows from Prometheus' history: {value:g}"
    shown = next((form(value) for ending, form in _UNITS if name.endswith(ending)), f"{value:g}")
    if name.endswith("_bytes_per_file"):
        return f"{name.removesuffix('_bytes_per_file').replace('_', ' ')}, per file: {shown}"
    cut = next((c for c in _UNIT_SUFFIXES if name.endswith(c) and name != c.lstrip("_")), "")
    return f"{name.removesuffix(cut).replace('_', ' ')}: {shown}"
