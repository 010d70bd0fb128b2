"""How labels, bounds and times are written in both text formats."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=16384)
def label_text(**labels: str | bytes) -> bytes:
    r"""Label text as it stands between the braces.

    >>> label_text(fs="a", jobid=b'b"c\\\n\xff').decode()
    'fs="a",jobid="b\\"c\\\\\\n�"'
    """
    return b",".join([b'%b="%b"' % (name.encode(), escape(value)) for name, value in labels.items()])


def escape(value: str | bytes) -> bytes:
    """A label's value as it stands between the quotes; bytes that are no UTF-8 become U+FFFD."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    text = text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return text.encode("utf-8", "replace")


def double_percent(text: bytes) -> bytes:
    """For text that becomes part of a ``%`` template."""
    return text.replace(b"%", b"%%")


def bound(value: float) -> bytes:
    """A bucket's bound as both formats want it: always a float.

    >>> bound(4096), bound(0.000256)
    (b'4096.0', b'0.000256')
    """
    return repr(float(value)).encode()


def seconds(usec: bytes) -> bytes:
    """Microseconds as seconds, by moving the decimal point in the digits.

    >>> seconds(b"63381633"), seconds(b"12")
    (b'63.381633', b'0.000012')
    """
    digits = usec.zfill(7)
    return digits[:-6] + b"." + digits[-6:]


def in_seconds(usecs: Iterable[bytes]) -> list[bytes]:
    """The same of many, spelt out: a call for each would take as long again."""
    return [usec[:-6] + b"." + usec[-6:] if len(usec) > 6 else b"0." + usec.zfill(6) for usec in usecs]
