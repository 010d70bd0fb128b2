"""NID: the address of a node on its network, in the binary form of changelog records and as text.

There are two binary forms of 24 bytes. The old form is a little-endian 64-bit number (network type, network number,
32-bit address) and padding. The large form, for addresses longer than 32 bits, is size, type, number and big-endian
address.

>>> nid_text(bytes.fromhex("0100000a00000200") + bytes(16), large=False)
'10.0.0.1@tcp'
>>> nid_text(bytes(24), large=False)
'0@<0:0>'
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

ANY = "<?>"
"""Text of the wildcard NID, which means any node."""
NONE = "0@<0:0>"
"""Text of the NID of 24 zero bytes, in records that no client caused."""

SMALL = struct.Struct("<IHH16x")
LARGE = struct.Struct(">BBH16s4x")

IP_NETWORKS = {2: "tcp", 5: "o2ib", 14: "gip", 18: "efa"}
NUMBER_NETWORKS = {9: "lo", 13: "gni", 15: "ptlf", 16: "kfi", 19: "bxi3f"}
_NAMES = IP_NETWORKS | NUMBER_NETWORKS


def nid_text(data: bytes, large: bool) -> str:
    """Format the 24 bytes as ``lctl`` does: ``10.0.0.1@tcp``, ``0@lo``; hexadecimal for an unknown network."""
    if large:
        extra_bytes, kind, number, address = LARGE.unpack(data)
        if extra_bytes:
            return _long_text(address[: min(extra_bytes + 4, 16)], kind, number)
        value = int.from_bytes(address[:4], "big")
    else:
        value, number, kind = SMALL.unpack(data)
        if (value, number, kind) == (0xFFFFFFFF, 0xFFFF, 0xFFFF):
            return ANY
    if kind in IP_NETWORKS:
        return f"{IPv4Address(value)}@{_network(kind, number)}"
    return f"{value if kind in NUMBER_NETWORKS else format(value, 'x')}@{_network(kind, number)}"


def _long_text(address: bytes, kind: int, number: int) -> str:
    if kind in IP_NETWORKS and len(address) == 16:
        return f"{IPv6Address(address)}@{_network(kind, number)}"
    words = (int.from_bytes(address[at : at + 4], "big") for at in range(0, len(address), 4))
    return f"{':'.join(format(word, 'x') for word in words)}@{_network(kind, number)}"


def _network(kind: int, number: int) -> str:
    if kind not in _NAMES:
        return f"<{kind}:{number}>"
    return f"{_NAMES[kind]}{number or ''}"
