"""Recorded texts, and what may become of them: other numbers, damage."""

import re
from functools import lru_cache
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

NUMBER = re.compile(rb"(?<![\w.])\d+(?![\w.:])")


@lru_cache(maxsize=16)
def texts(root: Path, name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(root.rglob(name)) if path.is_file() and path.stat().st_mode & 0o444]


pieces = st.sampled_from([b"0", b"9", b" ", b"\n", b":", b"100", b"0 0 0 | 1 0 0\n"])
damage = st.tuples(st.integers(0, 1 << 30), st.binary(max_size=3) | pieces, st.integers(0, 40))
renumbering = st.lists(st.sampled_from([b"0", b"1", b"7", b"100", b"12345678901234567890"]), min_size=1, max_size=40)


def damaged(text: bytes, where: int, what: bytes, length: int) -> bytes:
    at = where % (len(text) + 1)
    return text[:at] + what + text[at + length :]


def renumbered(text: bytes, numbers: list[bytes], every: int) -> bytes:
    """Some numbers replaced."""
    count = -1

    def other(match: re.Match[bytes]) -> bytes:
        nonlocal count
        count += 1
        return numbers[count % len(numbers)] if count % every == 0 else match[0]

    return NUMBER.sub(other, text)


any_text = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
