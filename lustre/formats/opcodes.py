"""The control characters of outlines (``lustre.formats.outline``) and of templates (``exporter.templates``).

``lustre/formats/_texts.c`` has the same names and values, and a module built from others is not used.
"""

from enum import Enum


class Opcode(bytes, Enum):
    """What to read at this place of an outline, or to print at this place of a template."""

    NUMBER = b"\x0e"
    """A number that is ignored."""
    WANTED = b"\x0f"
    """A number that is extracted. It must be below 2⁶³ - 1, the limit of the kernel's sums."""
    WANTED_TIME = b"\x10"
    """Digits and points, extracted as text."""
    TIME = b"\x11"
    FORGET = b"\x12"
    """Matches no text. Resets the record of nonzero numbers for ``SEEN``."""
    SEEN = b"\x13"
    """Matches no text. If all numbers extracted or counted since the reset are zero, the text has another form."""
    COUNTED = b"\x14"
    """A number that is ignored but counts for ``SEEN``."""
    SIGNED = b"\x15"
    """A number that is ignored and may have wrapped."""
    ZERO = b"\x16"
    """A number that is extracted and must be zero; a nonzero number means another form."""
    BLANKS = b"\x17"
    """Any number of further spaces, which are padding."""

    INTEGER = b"\x19"
    SECONDS = b"\x1a"
    """A number of microseconds, printed as seconds."""
    CUMULATIVE = b"\x1b"
    """The sum of this number and all numbers before it."""
    TOTAL = b"\x1c"
    """The sum of all numbers before it; takes no number."""
    NEW_SUM = b"\x1d"
    """Prints nothing and starts a new sum."""
    LABELS = b"\x1e"
    """The label text of a device. Templates with it are shared by all devices of a form."""
