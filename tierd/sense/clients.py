"""What clients did with their read-ahead, statahead and RPCs: from the parameter files of this node's mounts.

Servers do not know these things. :mod:`tierd.sense.client_exporters` takes the same from exporters on other clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lustre.formats import df, read_ahead_stats, rpc_stats, statahead_stats
from lustre.formats.histogram import Histogram
from lustre.parameters import Tree, parse_device
from tierd.sense.client_counters import ClientCounters, RpcCounters

THIS_NODE = "this node"
MIB = 1 << 20


def counters(tree: Tree, pools: Mapping[str, str]) -> Iterator[ClientCounters]:
    """Counters of every mount of this node. ``pools`` says which pool a target (full name) is in."""
    for name in tree.devices("llite"):
        device = parse_device(name)
        found = ClientCounters(THIS_NODE, name, device.fsname)
        ahead = read_ahead_stats.parse(tree.read(f"llite/{name}/read_ahead_stats") or b"")
        found.read_ahead = {event.decode("ascii", "replace"): float(count)
                            for event, count in zip(ahead.names, ahead.counts, strict=True)}
        found.statahead = statahead(tree.read(f"llite/{name}/statahead_stats") or b"")
        found.read_ahead_bytes = MIB * number(tree, f"llite/{name}/max_read_ahead_mb")
        found.read_ahead_file_bytes = MIB * number(tree, f"llite/{name}/max_read_ahead_per_file_mb")
        found.statahead_most = number(tree, f"llite/{name}/statahead_max")
        for kind in ("osc", "mdc"):
            for link in tree.devices(kind):
                other = parse_device(link)
                if (other.fsname, other.instance) == (device.fsname, device.instance):
                    target = f"{other.fsname}-{other.target}"
                    of = pools.get(target, "") if kind == "osc" else other.target
                    add_link(found, tree, kind, link, of)
        yield found


def statahead(data: bytes) -> dict[str, float]:
    """The counts that this release prints."""
    seen = statahead_stats.parse(data)
    named = {"started": seen.total, "wrong": seen.wrong, "hits": seen.hit_total, "misses": seen.miss_total}
    return {name: float(count) for name, count in named.items() if count is not None}


def number(tree: Tree, parameter: str) -> float:
    """A parameter that is a number; 0 where it is not there."""
    return float(df.integer(tree.read(parameter) or b"") or 0)


def add_link(client: ClientCounters, tree: Tree, kind: str, link: str, of: str) -> None:
    """Add the RPCs to one target. Limits of targets of one pool are alike as a rule; the lowest counts."""
    data = tree.read(f"{kind}/{link}/rpc_stats")
    if data is None:
        return
    rpcs = rpc_stats.parse(data)
    most = number(tree, f"{kind}/{link}/max_rpcs_in_flight")
    pages = number(tree, f"{kind}/{link}/max_pages_per_rpc")
    for direction, column in (("read", 0), ("write", -1)):
        known = client.rpc((kind, of, direction))
        add_table(known.in_flight, rpcs.rpcs_in_flight, column)
        add_table(known.pages, rpcs.pages_per_rpc, column)
        limit(known, most, pages)
    if rpcs.modify_rpcs_in_flight is not None:
        known = client.rpc((kind, of, "modify"))
        add_table(known.in_flight, rpcs.modify_rpcs_in_flight, 0)
        limit(known, number(tree, f"{kind}/{link}/max_mod_rpcs_in_flight"), 0.0)


def add_table(into: dict[int, float], table: Histogram | None, column: int) -> None:
    """Add the counts of one direction."""
    if table is not None:
        counts: Iterable[int] = table.columns[column]
        for upper, count in zip(table.uppers, counts, strict=True):
            if count:
                into[upper] = into.get(upper, 0.0) + count


def limit(rpcs: RpcCounters, in_flight: float, pages: float) -> None:
    """Keep the lowest limit seen; 0 is none seen."""
    rpcs.most_in_flight = min(filter(None, (rpcs.most_in_flight, in_flight)), default=0.0)
    rpcs.most_pages = min(filter(None, (rpcs.most_pages, pages)), default=0.0)
