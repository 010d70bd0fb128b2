"""NID: the address of a node on its network, in the binary form of changelog records and as text.

There are two binary forms of 24 bytes. The old form is a little-endian 64-bit number (network type, network number,
32-bit address) and padding. The large form, for addresses longer than 32 bits, is size, type, number and big-endian
address.

>>> nid_text(nid_bytes("10.0.0.1@tcp")[0], large=False)
'10.0.0.1@tcp'
>>> nid_text(*nid_bytes("fe80::1@tcp1"))
'fe80::1@tcp1'
>>> nid_text(bytes(24), large=False)
'0@<0:0>'
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

ANY = "<?>"
"""Text of the wildcard NID, which means any node."""
NONE = "0@<0:0>"
"""Text of the NID of 24 zero bytes, in records that no client caused."""

_SMALL = struct.Struct("<IHH16x")
_LARGE = struct.Struct(">BBH16s4x")
_TEXT = re.compile(r"([^@]*)@(?:<(\d+):(\d+)>|([a-z][a-z0-9]*?)(\d*))")

_IP_NETWORKS = {2: "tcp", 5: "o2ib", 14: "gip", 18: "efa"}
_NUMBER_NETWORKS = {9: "lo", 13: "gni", 15: "ptlf", 16: "kfi", 19: "bxi3f"}
_NAMES = _IP_NETWORKS | _NUMBER_NETWORKS
_TYPES = {name: number for number, name in _NAMES.items()} | {"bxi": 19}


def nid_text(data: bytes, large: bool) -> str:
    """Format the 24 bytes as ``lctl`` does: ``10.0.0.1@tcp``, ``0@lo``; hexadecimal for an unknown network."""
    if large:
        extra_bytes, kind, number, address = _LARGE.unpack(data)
        if extra_bytes:
            return _long_text(address[: min(extra_bytes + 4, 16)], kind, number)
        value = int.from_bytes(address[:4], "big")
    else:
        value, number, kind = _SMALL.unpack(data)
        if (value, number, kind) == (0xFFFFFFFF, 0xFFFF, 0xFFFF):
            return ANY
    if kind in _IP_NETWORKS:
        return f"{IPv4Address(value)}@{_network(kind, number)}"
    return f"{value if kind in _NUMBER_NETWORKS else format(value, 'x')}@{_network(kind, number)}"


def _long_text(address: bytes, kind: int, number: int) -> str:
    if kind in _IP_NETWORKS and len(address) == 16:
        return f"{IPv6Address(address)}@{_network(kind, number)}"
    words = (int.from_bytes(address[at : at + 4], "big") for at in range(0, len(address), 4))
    return f"{':'.join(format(word, 'x') for word in words)}@{_network(kind, number)}"


def _network(kind: int, number: int) -> str:
    if kind not in _NAMES:
        return f"<{kind}:{number}>"
    return f"{_NAMES[kind]}{number or ''}"


@lru_cache(maxsize=4096)
def nid_bytes(text: str) -> tuple[bytes, bool]:
    """Encode a NID in 24 bytes, and return whether they have the large form. Raises ValueError with the problem."""
    if text == ANY:
        return _SMALL.pack(0xFFFFFFFF, 0xFFFF, 0xFFFF), False
    match = _TEXT.fullmatch(text)
    if match is None or (match[4] is not None and match[4] not in _TYPES):
        raise ValueError(f"not a NID: {text!r} (expected something like 10.0.0.1@tcp)")
    kind = _TYPES[match[4]] if match[4] else int(match[2])
    try:
        return _pack(match[1], kind, int(match[5] or match[3] or 0))
    except (ValueError, struct.error) as error:
        raise ValueError(f"not a NID: {text!r} ({error})") from error


def _pack(address: str, kind: int, number: int) -> tuple[bytes, bool]:
    if kind in _IP_NETWORKS:
        value = ip_address(address)
        if isinstance(value, IPv6Address):
            return _LARGE.pack(12, kind, number, value.packed), True
        return _SMALL.pack(int(value), number, kind), False
    return _SMALL.pack(int(address, 10 if kind in _NUMBER_NETWORKS else 16), number, kind), False
