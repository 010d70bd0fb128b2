"""Text for people: names may hold any bytes, and are made safe for a terminal, a log and a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum


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


def short_name(target: str) -> str:
    """The name of a target without the file system, as the exporter's label has it.

    >>> short_name("lustre-OST0003"), short_name("a-b-MDT0000")
    ('OST0003', 'MDT0000')
    """
    return target.rpartition("-")[2]


def printable(words: str) -> str:
    r"""A sentence with what could disturb a terminal made visible.

    >>> print(printable("job \x1b[2J of uid 7"), printable("plain, ä"))
    job \x1b[2J of uid 7 plain, ä
    """
    return words if words.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)


def quoted(path: str) -> str:
    r"""A path as one word that cannot disturb a terminal.

    >>> print(quoted("/proj/run"), quoted("/proj/zwei Größen"), quoted("/proj/\x1b[2J\n"))
    /proj/run '/proj/zwei Größen' '/proj/\x1b[2J\n'
    """
    return path if path.isprintable() and " " not in path and path else repr(path)


def first_names(names: Iterable[str], most: int = 3) -> str:
    """Names in a sentence. Beyond ``most``, only their number.

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


MOST_REGAINED = 2.0
"""A larger part says only that the loss was larger than predicted."""


def regained_text(part: float, low: float, high: float) -> str:
    """The part of its loss that a stream has regained, with the interval that holds it with a probability of 90%.

    >>> regained_text(0.75, 0.6, 0.9), regained_text(-2.5, -2.7, -1.8)
    ('75% of the loss regained (60% to 90%)', 'the loss grew by 250% (180% to 270%)')
    >>> regained_text(0.75, 0.6, 9.5)
    '75% of the loss regained (60% to over 200%)'
    """
    if high < 0:
        return f"the loss grew by {percent(-part)} ({percent(-high)} to {percent(-low)})"
    most = percent(high) if high <= MOST_REGAINED else f"over {percent(MOST_REGAINED)}"
    return f"{percent(part)} of the loss regained ({percent(low)} to {most})"


def bytes_text(size_bytes: float) -> str:
    """Bytes for people, in powers of 1000, as disks are sold.

    >>> bytes_text(0), bytes_text(999_400), bytes_text(999_999), bytes_text(12_345_678), bytes_text(176.8e9)
    ('0 B', '999 kB', '1.0 MB', '12.3 MB', '177 GB')
    >>> bytes_text(999.96e9), bytes_text(3.2e15), bytes_text(-2e18)
    ('1.0 TB', '3.2 PB', '-2000 PB')
    """
    value, power, units = float(size_bytes), 0, ("B", "kB", "MB", "GB", "TB", "PB")
    while abs(value) >= 999.5 and power < len(units) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.{0 if power < 2 or abs(value) >= 99.95 else 1}f} {units[power]}"


def duration_text(seconds: float | None) -> str:
    """A duration for people.

    >>> duration_text(4.2), duration_text(300), duration_text(9000), duration_text(200_000), duration_text(None)
    ('4 s', '5 min', '2.5 h', '2 days', 'never')
    """
    if seconds is None:
        return "never"
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def rate_text(bytes_per_second: float) -> str:
    """Bytes per second for people.

    >>> rate_text(44e6), rate_text(176_789.9e6)
    ('44.0 MB/s', '177 GB/s')
    """
    return f"{bytes_text(bytes_per_second)}/s"


def binary_text(size_bytes: float) -> str:
    """Bytes for people, in powers of 1024: sizes of files and RPCs, as layouts and Lustre's settings count them.

    >>> binary_text(512), binary_text(879 * 1024), binary_text(1 << 20), binary_text(1.5 * 2**20), binary_text(3 << 50)
    ('512 B', '879 KiB', '1 MiB', '1.5 MiB', '3 PiB')
    """
    value, units = float(size_bytes), ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = 0
    while abs(round(value)) >= 1024 and power < len(units) - 1:
        value, power = value / 1024, power + 1
    number = f"{value:.0f}" if power < 2 or abs(value) >= 99.95 else f"{value:.1f}".removesuffix(".0")
    return f"{number} {units[power]}"


class Carrier(IntEnum):
    """The main evidence of a loss."""

    ARRIVAL = 1
    """The stream was seen before the other job started."""
    LOAD = 2
    """The stream gets less when the other job does more."""
    HISTORY = 3
    """Counters since the start of the stream, or Prometheus, have what it got before."""
    DEVICE_TIME = 4
    """What the work of the jobs costs the targets, and nothing else."""


CARRIERS = {
    Carrier.ARRIVAL: "the time before the aggressor started",
    Carrier.LOAD: "how it varies with the aggressor's load",
    Carrier.HISTORY: "its throughput before tierd started",
    Carrier.DEVICE_TIME: "device time alone",
}
"""What the loss is known from."""


def evidence_parts(name: str, value: float | None) -> tuple[str, str]:
    """One number of a finding's evidence as a label and a text. The unit at the end of its name decides the format.

    None is infinite, as the slowdown of a stream that stalls.

    >>> evidence_parts("victim_usual_bytes_per_second", 177e9), evidence_parts("device_time_share_error", 0.028)
    (('victim usual throughput', '177 GB/s'), ('device time share, standard error', '3%'))
    >>> evidence_parts("aggressor_bytes_per_file", 1 << 20), evidence_parts("aggressor_mean_rpc_bytes", 4096.0)
    (('aggressor, size per file', '1 MiB'), ('aggressor mean RPC size', '4 KiB'))
    >>> evidence_parts("slowdown", None), evidence_parts("slowdown", 1.5), evidence_parts("cold_bytes", 3.3e12)
    (('slowdown', 'infinite'), ('slowdown', '1.50 times'), ('cold size', '3 TiB'))
    >>> evidence_parts("loss_high", 0.38), evidence_parts("aggressor_came_at", 0.0)
    (('loss, upper end of the 90% interval', '38%'), ('aggressor started', 'before the victim was seen'))
    >>> evidence_parts("carrier", 1.0)
    ('loss, known from', 'the time before the aggressor started')
    """
    if name in _EVIDENCE_WORDS and value is not None:
        words, form = _EVIDENCE_WORDS[name]
        return words, form(value)
    ending, label, form = next((each for each in _EVIDENCE_FORMS if name.endswith(each[0])), ("", "", "{:.6g}".format))
    words = f"{name.removesuffix(ending)}{label}".replace("_", " ").replace("rpc", "RPC").strip()
    return words, "infinite" if value is None else form(value)


def utc_text(seconds: float) -> str:
    """A time for a log.

    >>> utc_text(1_795_000_000)
    '2026-11-18 11:06:40 UTC'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_EVIDENCE_WORDS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "learnt_windows": ("windows from Prometheus' history", "{:g}".format),
    "loss_low": ("loss, lower end of the 90% interval", percent),
    "loss_high": ("loss, upper end of the 90% interval", percent),
    "loss_probability": ("probability that the loss is more than min_loss", percent),
    "carrier": ("loss, known from",
                lambda number: CARRIERS[Carrier(int(number))] if number in CARRIERS else f"{number:g}"),
    "aggressor_came_at": ("aggressor started", lambda time: utc_text(time) if time else "before the victim was seen"),
}
_EVIDENCE_FORMS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("_bytes_per_second", " throughput", rate_text),
    ("_per_second", "", "{:.1f}/s".format),
    ("_bytes_per_file", ", size per file", binary_text),
    ("_bytes_per_open", ", size per open", binary_text),
    ("bytes_to_free", "size to free", binary_text),
    ("_bytes", " size", binary_text),
    ("_share_error", " share, standard error", percent),
    ("share", "share", percent),
    ("_seconds", "", "{:.0f} s".format),
    ("usec_per_rpc", "time per RPC", lambda usec: f"{usec / 1000:.1f} ms"),
    ("_usec", "", lambda usec: f"{usec / 1000:.1f} ms"),
    ("slowdown", "slowdown", "{:.2f} times".format),
    ("_ratio", "", "{:.2f} times".format),
    ("_before", " before", utc_text),
)


def without_figures(sentence: str) -> str:
    """The sentence without its numbers and their units: two reports of one fact compare equal.

    >>> without_figures("pool 'flash' has 1.2 GB free") == without_figures("pool 'flash' has 900 MB free")
    True
    """
    return re.sub(r"\d+(\.\d+)?( ([kMGTP]|[KMGTP]i)?B\b)?", "#", sentence)


def shell_word(path: str) -> str:
    r"""A path quoted for bash.

    >>> print(shell_word("/proj/run"), shell_word("/two words"), shell_word("/it's"), shell_word("/\x1b\n\udcff'"))
    /proj/run '/two words' '/it'"'"'s' $'/\x1b\n\xff\''
    """
    if path.isprintable():
        from shlex import quote  # noqa: PLC0415 -- tierctl status needs none

        return quote(path)
    known = {"\n": r"\n", "\t": r"\t", "\\": r"\\", "'": r"\'"}
    return "$'" + "".join(c if c.isprintable() and c not in known else known.get(c) or "".join(
        f"\\x{byte:02x}" for byte in c.encode("utf-8", "surrogateescape")) for c in path) + "'"


def evidence_text(name: str, value: float | None) -> str:
    """One number of a finding's evidence in one line.

    >>> evidence_text("victim_bytes_per_second", 41.2e6), evidence_text("aggressor_read_share", 0.25)
    ('victim throughput: 41.2 MB/s', 'aggressor read share: 25%')
    """
    return ": ".join(evidence_parts(name, value))
