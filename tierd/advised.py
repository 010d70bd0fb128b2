"""Values that the papers and Lustre's manual advise, for ``tierctl audit`` and for the detectors."""

from __future__ import annotations

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
