"""Sizes as ``lfs`` writes them: the letters mean powers of 1024.

>>> size_text(2 << 20), size_text(1536), size_text(1000)
('2M', '1536', '1000')
>>> parse_size("2M"), parse_size("512")
(2097152, 512)
"""

from __future__ import annotations

_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}


def size_text(size_bytes: int) -> str:
    """Format bytes in the shortest exact form: ``2M``; plain bytes where 1024 does not divide them."""
    for letter, power in reversed(_POWERS.items()):
        if size_bytes and size_bytes % (1 << power) == 0:
            return f"{size_bytes >> power}{letter}"
    return str(size_bytes)


def parse_size(text: str) -> int:
    """Parse ``2M``, ``64k`` or ``512`` to bytes. Raises ValueError naming the text."""
    number, letter = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if letter not in _POWERS or not (number.isascii() and number.isdigit()):
        raise ValueError(f"not a size: {text!r} (expected something like 2M or 65536)")
    return int(number) << _POWERS[letter]
