"""Readings of clients to test advisers with."""

from __future__ import annotations

from dataclasses import replace

from tests.tierd.detect.views import POOLS, filled
from tests.tierd.worlds import MIB
from tierd.model import ClientLoad, Facts, RpcLoad

NOW = 120.0
WELL = ClientLoad("n1", "/mnt/l", "lustre", NOW - 10, 60.0, {"hits": 60_000, "misses": 600}, 256 * MIB, 64 * MIB,
                  {"started": 40, "wrong": 1, "hits": 27_000, "misses": 100}, 128)


def facts(*clients: ClientLoad) -> Facts:
    return Facts(pools=POOLS, fill=filled(), clients=clients)


def ahead(**events: float) -> ClientLoad:
    return replace(WELL, read_ahead=events)


def rpcs(in_flight: dict[int, float], pages: dict[int, float] | None = None, max_pages: float = 1024.0,
         kind: str = "osc", direction: str = "write") -> ClientLoad:
    pool = "hdd" if kind == "osc" else "MDT0000"
    return replace(WELL, rpcs=(RpcLoad(kind, pool, direction, in_flight, pages or {}, 8.0, max_pages),))
