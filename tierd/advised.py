"""Values that the papers and Lustre's manual advise, for ``tierctl audit`` and for policies.

>>> first_number("8,0,0"), first_number("0x4c09a01cbba"), first_number("N")
(8, 5225264040890, None)
>>> driver_command("cap_mask", CLIENT_DRIVER["cap_mask"])
"echo 'options hfi1 cap_mask=0x4c09a01cbba' > /etc/modprobe.d/hfi1-cap_mask.conf, and load the driver again"
"""

from __future__ import annotations

from collections.abc import Mapping

MIB = 1 << 20
RPC_BYTES = 16 * MIB
"""RPC size of "Lustre on PowerFlex" (Dell and Intel): brw_size 16, and 4096 pages of 4 KiB."""
USUAL_RPC_BYTES = 4 * MIB
"""RPC size that all servers since 2.10 can accept. It is advised if their ``brw_size`` is not known."""
RPCS_IN_FLIGHT = 16
"""``max_rpcs_in_flight`` of the same paper."""
READ_AHEAD_BYTES = 1024 * MIB
"""``max_read_ahead_mb`` of the same paper."""
RPCS_IN_WINDOW = 4
"""RPCs that a read-ahead window must span so that a stream sends full RPCs."""
STATAHEAD_BATCH = 64
"""``statahead_batch_max`` of Lustre 2.16, which halved the time of getattr (DDN 2022)."""
LOW_STATAHEAD_HITS, GOOD_STATAHEAD_HITS = 0.5, 0.8
"""Shares of fetched entries that are used: below the first batches would not help, from the second on they would."""
FABRIC_DRIVER = "hfi1"
"""Kernel module of Omni-Path adapters."""
SERVER_DRIVER: Mapping[str, int] = {"krcvqs": 8, "piothreshold": 0, "sge_copy_mode": 2, "wss_threshold": 70}
CLIENT_DRIVER: Mapping[str, int] = {"krcvqs": 4, "cap_mask": 0x4C09A01CBBA}
"""Parameters of the Omni-Path driver in "Lustre on PowerFlex"."""
DRIVER_SETTINGS = tuple(dict.fromkeys((*SERVER_DRIVER, *CLIENT_DRIVER)))
DRIVER_TEXTS: Mapping[str, str] = {
    "krcvqs": "Receive queues for the kernel, to which LNet's traffic is spread.",
    "piothreshold": "Message size up to which the processor writes to the adapter itself instead of using DMA.",
    "sge_copy_mode": "How received data is copied: 2 chooses by the size of the working set.",
    "wss_threshold": "Working set, in percent of the cache, from which copies bypass the cache.",
    "cap_mask": "Optional functions of the adapter.",
}


def first_number(text: str | None) -> int | None:
    """The first number of a driver's parameter, which may be a list; None without a number."""
    try:
        return int((text or "").split(",")[0], 0)
    except ValueError:
        return None


def driver_value(name: str, value: int) -> str:
    """A value of a driver's parameter as the documentation of the driver writes it."""
    return hex(value) if name == "cap_mask" else str(value)


def driver_command(name: str, value: int) -> str:
    """How to set a parameter of the Omni-Path driver."""
    return (f"echo 'options {FABRIC_DRIVER} {name}={driver_value(name, value)}' > "
            f"/etc/modprobe.d/{FABRIC_DRIVER}-{name}.conf, and load the driver again")
