"""How a directory is spread over metadata targets (DNE): its stripes, and the default of new subdirectories.

``trusted.lmv`` has the stripes of a striped directory: one directory on each MDT, among which a hash of the name
chooses. A directory without it is on one MDT. ``trusted.dmv`` has the default striping that new subdirectories get,
where the directory has one of its own; without it, that of the root applies, which ``lfs getdirstripe -D`` then prints.
Both values are little-endian (``struct lmv_mds_md_v1`` and ``struct lmv_user_md_v1`` in lustre_idl.h, lustre_user.h).

>>> striped = ("d00cd20c02000000010000000300000001000000" + "00" * 36
...            + "d10b0040020000000500000000000000" + "03040000020000000500000000000000")
>>> found = stripes_of_xattr(bytes.fromhex(striped))
>>> found.stripe_count, found.mdt_index, found.hash_type
(2, 1, 'crush')
>>> default = "d00cd30c02000000ffffffff000000000000000003000000" + "00" * 24
>>> default_of_xattr(bytes.fromhex(default))
DefaultStriping(stripe_count=2, mdt_index=-1, hash_type='none', max_inherit=3, max_inherit_rr=0, pool='')
>>> to_xattr(default_of_xattr(bytes.fromhex(default))).hex() == default
True
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from lustre.fid import FID_BYTES

_STRIPED, _DEFAULT, _FOREIGN, _STRIPE = 0xCD20CD0, 0xCD30CD0, 0xCD50CD0, 0xCD40CD0
_MAGIC = struct.Struct("<I")
_STRIPES = struct.Struct("<IIIIIIII8x16s")
_DEFAULTS = struct.Struct("<IiiIIBB10x16s")

_HASHES = {0: "none", 1: "all_chars", 2: "fnv_1a_64", 3: "crush", 4: "crush2"}
_HASH_NUMBERS = {name: number for number, name in _HASHES.items()}
_HASH_FLAGS = {
    0x01000000: "overstriped", 0x02000000: "fixed", 0x04000000: "merge", 0x08000000: "split", 0x10000000: "lost_lmv",
    0x20000000: "bad_type", 0x80000000: "migrating",
}  # fmt: skip
UNLIMITED_INHERIT = -1
"""``--max-inherit=-1``: all levels below inherit the default."""
MAX_STRIPES = 2000
"""``LMV_MAX_STRIPE_COUNT``."""


@dataclass(frozen=True, slots=True)
class DirectoryStripes:
    """The stripes of a directory, as ``lfs getdirstripe`` prints them."""

    stripe_count: int
    """0 for a directory on one MDT, without stripes."""
    mdt_index: int
    """MDT of the directory itself, or of its first stripe."""
    hash_type: str = "none"
    """``fnv_1a_64``, ``crush``, …; flags follow after commas: ``fnv_1a_64,fixed``, ``crush,migrating``."""

    @property
    def is_striped(self) -> bool:
        return self.stripe_count > 1

    @property
    def is_changing(self) -> bool:
        """Whether a migration, split or merge of the directory is in progress, or was interrupted."""
        return bool({"migrating", "split", "merge", "lost_lmv", "bad_type"} & set(self.hash_type.split(",")))


@dataclass(frozen=True, slots=True)
class DefaultStriping:
    """The striping of new subdirectories, as ``lfs setdirstripe -D`` sets it."""

    stripe_count: int = 1
    """0 or 1: a subdirectory is on one MDT; -1: a stripe on every MDT."""
    mdt_index: int = -1
    """MDT of new subdirectories; -1: in turn, or by free space."""
    hash_type: str = "none"
    max_inherit: int = UNLIMITED_INHERIT
    """Levels below that inherit the default: -1 for all, 0 for none, 1 for the subdirectories only."""
    max_inherit_rr: int = 0
    """Levels below whose subdirectories are created on the MDTs in turn: -1 for all."""
    pool: str = ""

    @property
    def is_usual(self) -> bool:
        """Whether new subdirectories are on one MDT that Lustre chooses, as in a new file system since 2.15."""
        return self.stripe_count in {0, 1} and self.mdt_index == -1


def same_default(one: DefaultStriping | None, other: DefaultStriping | None) -> bool:
    """Whether two defaults give new subdirectories the same striping. Flags of the hash, which Lustre sets, may differ.

    >>> same_default(DefaultStriping(2, hash_type="crush"), DefaultStriping(2, hash_type="crush,fixed"))
    True
    >>> same_default(DefaultStriping(2), None), same_default(None, None)
    (False, True)
    """
    if one is None or other is None:
        return one is other
    return _essence(one) == _essence(other)


def _essence(default: DefaultStriping) -> tuple[object, ...]:
    return (default.stripe_count, default.mdt_index, default.hash_type.partition(",")[0], default.max_inherit,
            default.max_inherit_rr)


def stripes_of_xattr(data: bytes) -> DirectoryStripes:
    """Decode ``trusted.lmv``. Raises ValueError that names the problem."""
    magic = _magic(data)
    if magic in {_FOREIGN, _STRIPE}:
        raise ValueError(f"directory striping: magic number {magic:#x} is that of a foreign directory or of one stripe")
    if magic != _STRIPED:
        raise ValueError(f"directory striping: unknown magic number {magic:#x}")
    _, count, index, hashed, *_ = _unpacked(_STRIPES, data)
    if count > MAX_STRIPES:
        raise ValueError(f"directory striping: {count} stripes at byte 4 are more than {MAX_STRIPES}")
    need = _STRIPES.size + count * FID_BYTES
    if len(data) < need:
        raise ValueError(f"directory striping: {count} stripes need {need} bytes, found {len(data)}")
    return DirectoryStripes(count, index, hash_text(hashed))


def default_of_xattr(data: bytes) -> DefaultStriping:
    """Decode ``trusted.dmv``. Raises ValueError that names the problem."""
    magic = _magic(data)
    if magic != _DEFAULT:
        raise ValueError(f"default directory striping: unknown magic number {magic:#x}")
    _, count, index, hashed, _, inherit, inherit_rr, pool = _unpacked(_DEFAULTS, data)
    name = pool.partition(b"\0")[0]
    if not name.isascii():
        raise ValueError(f"default directory striping: pool name {name!r} is not ASCII")
    return DefaultStriping(count, index, hash_text(hashed), inherited(inherit, unlimited=0, none=255),
                           inherited(inherit_rr, unlimited=255, none=0), pool=name.decode("ascii"))


def to_xattr(default: DefaultStriping) -> bytes:
    """Encode a default striping as ``struct lmv_user_md``. Raises ValueError for one that Lustre cannot have."""
    name = default.pool.encode("ascii", "replace")
    if len(name) > 15 or not -5 <= default.stripe_count <= MAX_STRIPES or not -1 <= default.mdt_index < 1 << 16:
        raise ValueError(f"no default striping of directories: {default}")
    return _DEFAULTS.pack(_DEFAULT, default.stripe_count, default.mdt_index, hash_number(default.hash_type), 0,
                          inherit_byte(default.max_inherit, unlimited=0, none=255),
                          inherit_byte(default.max_inherit_rr, unlimited=255, none=0), name)


def setdirstripe_arguments(default: DefaultStriping | None) -> tuple[str, ...]:
    """Options of ``lfs setdirstripe`` that set a default striping, or (None) delete it.

    >>> " ".join(setdirstripe_arguments(DefaultStriping(4, -1, "crush", 1)))
    '-D -c 4 -i -1 -H crush --max-inherit 1'
    >>> setdirstripe_arguments(None)
    ('-D', '-d')
    """
    if default is None:
        return "-D", "-d"
    options = ["-D", "-c", str(default.stripe_count), "-i", str(default.mdt_index)]
    kind = default.hash_type.partition(",")[0]
    options += ["-H", kind] if kind != "none" else []
    options += ["--max-inherit", str(default.max_inherit)]
    options += ["--max-inherit-rr", str(default.max_inherit_rr)] if default.max_inherit_rr else []
    return tuple(options)


_NUMBER_LINE = re.compile(r"(lmv_stripe_count|lmv_stripe_offset|lmv_max_inherit|lmv_max_inherit_rr): +(-?\d{1,9})")
_HASH_LINE = re.compile(r"lmv_hash_type: +([a-z0-9_,]+|0x[0-9a-f]+)")


def default_of_yaml(text: str) -> DefaultStriping:
    """Parse the output of ``lfs getdirstripe -D -y``. Raises ValueError that names the line.

    For a directory without a default of its own, ``lfs`` prints what it inherits.
    """
    numbers, hashed = _lines_of(text)
    try:
        return DefaultStriping(numbers["lmv_stripe_count"], numbers["lmv_stripe_offset"], hashed,
                               numbers.get("lmv_max_inherit", UNLIMITED_INHERIT), numbers.get("lmv_max_inherit_rr", 0))
    except KeyError as error:
        raise ValueError(f"default directory striping: {error.args[0]} is missing") from None


def default_to_yaml(default: DefaultStriping) -> str:
    """Format a default striping as ``lfs getdirstripe -D -y`` prints it, without its pool."""
    return (f"lmv_stripe_count:  {default.stripe_count}\nlmv_stripe_offset: {default.mdt_index}\n"
            f"lmv_hash_type:     {default.hash_type}\nlmv_max_inherit:   {default.max_inherit}\n"
            f"lmv_max_inherit_rr: {default.max_inherit_rr}\n")


def _lines_of(text: str) -> tuple[dict[str, int], str]:
    numbers: dict[str, int] = {}
    hashed = "none"
    for number, line in enumerate(text.split("\n"), start=1):
        if match := _NUMBER_LINE.fullmatch(line):
            numbers[match[1]] = int(match[2])
        elif match := _HASH_LINE.fullmatch(line):
            hashed = match[1]
        elif line.strip():
            raise ValueError(f"directory striping, line {number}: unknown: {line[:80]!r}")
    return numbers, hashed


def hash_text(number: int) -> str:
    """The name of a hash, with its flags.

    >>> hash_text(3), hash_text(0x02000002), hash_text(9), hash_number("fnv_1a_64,fixed") == 0x02000002
    ('crush', 'fnv_1a_64,fixed', '0x9', True)
    """
    words = [_HASHES.get(number & 0xFFFF, f"{number & 0xFFFF:#x}")]
    rest = number & ~0xFFFF
    for bit, word in _HASH_FLAGS.items():
        if rest & bit:
            words.append(word)
            rest &= ~bit
    return ",".join([*words, *([f"{rest:#x}"] if rest else [])])


def hash_number(text: str) -> int:
    """The number of a hash with its flags. Raises ValueError for an unknown word."""
    flags = {word: bit for bit, word in _HASH_FLAGS.items()}
    number = 0
    for word in text.split(","):
        known = _HASH_NUMBERS.get(word, flags.get(word))
        number |= int(word, 16) if known is None else known
    return number


def inherited(byte: int, *, unlimited: int, none: int) -> int:
    """Levels that inherit a default, from the byte of Lustre."""
    return -1 if byte == unlimited else 0 if byte == none else byte


def inherit_byte(levels: int, *, unlimited: int, none: int) -> int:
    """The byte of Lustre for the levels that inherit a default. Raises ValueError beyond 254 levels."""
    if not -1 <= levels <= 254:
        raise ValueError(f"{levels} levels of directories cannot inherit a default")
    return unlimited if levels == -1 else none if levels == 0 else levels


def _magic(data: bytes) -> int:
    return int(_unpacked(_MAGIC, data)[0])


def _unpacked(form: struct.Struct, data: bytes) -> tuple[int, int, int, int, int, int, int, bytes]:
    if len(data) < form.size:
        raise ValueError(f"directory striping: {form.size} bytes are needed, found {len(data)}")
    found: tuple[int, int, int, int, int, int, int, bytes] = form.unpack_from(data)
    return found
