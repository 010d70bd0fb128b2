"""The storage below OSTs rebuilds or rebalances. Its targets are slow then, and no job is the cause.

An integration reports it. While it lasts, the targets count as unhealthy: no job is blamed
there, and tierd does not learn from them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tierd.detect.groups import grouped
from tierd.detect.view import View
from tierd.model import Advice, Finding
from tierd.policies.protocol import Common, Policy
from tierd.text import binary_text, first_names, quoted, rate_text

WORK = {"rebuild": "rebuilds", "rebalance": "rebalances"}


def find(view: View, _: Common) -> Iterator[Finding]:
    work = view.windows[-1].storage_work
    targets = grouped(((one.kind, one.pool), target) for target, one in sorted(work.items()) if one.kind in WORK)
    for (kind, pool), slowed in sorted(targets.items()):
        one = work[slowed[0]]
        progress = Advice(one.command, "on the storage system", f"shows the progress of the {kind}; it ends by itself")
        yield POLICY.finding(
            view, f"{one.system} {WORK[kind]} its pool {quoted(pool)} at {rate_text(one.bytes_per_second)}; "
            f"{binary_text(one.pending_bytes)} are left. This slows {first_names(slowed)}; no job is blamed there",
            {"storage_bytes_per_second": one.bytes_per_second, "pending_bytes": one.pending_bytes},
            targets=slowed, subject=f"{kind} of {pool}", advice=(progress,) if one.command else ())


POLICY = Policy("storage-rebuild", Common, find)
