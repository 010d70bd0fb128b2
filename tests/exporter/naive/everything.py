"""All samples of a tree, each once."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.checks import checks, scrubs
from tests.exporter.naive.clients import mdc, osc, osc_summed
from tests.exporter.naive.disks import disks, latencies
from tests.exporter.naive.forms import Sample
from tests.exporter.naive.jobs import jobs
from tests.exporter.naive.locks import locks
from tests.exporter.naive.metadata import metadata
from tests.exporter.naive.mounts import extents, llite
from tests.exporter.naive.network import network
from tests.exporter.naive.node import management, node, nodemaps
from tests.exporter.naive.osp import osp
from tests.exporter.naive.pools import pool
from tests.exporter.naive.quota import quotas, slaves
from tests.exporter.naive.reader import Reader
from tests.exporter.naive.servers import clients, recovery, servers
from tests.exporter.naive.services import services

PARTS = (
    llite, extents, mdc, pool, servers, jobs, node, locks, network, services, disks, scrubs, checks, recovery, metadata,
    clients, quotas, slaves, nodemaps, management,
)  # fmt: skip

Expected = dict[tuple[str, frozenset[tuple[str, str]]], Decimal]


def everything_in(reader: Reader, *, per_target: bool = False) -> Expected:
    """By name and labels. Fails for a sample that is there twice."""
    found: Expected = {}
    for name, labels, value in every(reader, per_target):
        key = name, frozenset(labels.items())
        assert key not in found, key
        found[key] = value
    return found


def every(reader: Reader, per_target: bool) -> Iterator[Sample]:
    for part in PARTS:
        yield from part(reader)
    yield from osc(reader) if per_target else osc_summed(reader)
    yield from latencies(reader, per_target=per_target)
    yield from osp(reader, per_target=per_target)
