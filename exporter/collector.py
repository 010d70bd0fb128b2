"""A collector: the families of one subsystem, and the function that collects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exporter.clock import Clock
from exporter.connections import OscTotals
from exporter.exposition import Family, MetricsPage
from exporter.node import Node
from exporter.reading import BELOW_TIMES, Part, natural
from exporter.sources import Render, Source

Collect = Callable[[Node, MetricsPage], None]
"""Adds the samples of one pass to the page. It may keep state between passes."""


@dataclass(frozen=True, slots=True)
class Context:
    """Parameters with which collectors start."""

    settings: Settings
    osc_totals: OscTotals
    """Sums over object storage clients, shared by two collectors."""
    wall: Clock
    """Clock to compare with the kernel's time stamps."""


@dataclass(frozen=True, slots=True)
class Collector:
    """A subsystem: its flag, its families, and how to start it."""

    name: str
    """Name of the collector, in its option and in the label ``collector``."""
    help: str
    families: tuple[Family, ...]
    start: Callable[[Context], Collect]
    default: bool = True


def stateless(collect: Collect) -> Callable[[Context], Collect]:
    """Return the ``start`` of a collector that keeps nothing between passes."""
    return lambda _: collect


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the collectors."""

    enabled: frozenset[str]
    """Names of the enabled collectors."""
    osc_per_target: bool = False
    jobs_limit: int = 0
    """Number of jobs with their own series per target. 0 means all."""
    jobs_idle_seconds: int = 3600
    """Jobs idle for longer have no series. 0 disables this."""
    deadline_seconds: float = 8.0
    """Time limit of a scrape. Slower collectors are missing from it."""
    quota_limit: int = 1000
    """Number of users, groups or projects with their own series per parameter. 0 means all."""
    osp_per_target: bool = False


Devices = Callable[[Node], list[tuple[str, bytes]]]
"""The devices of a collector, each with its label text."""


def _devices_of(kind: str) -> Devices:
    return Node.mounts if kind == "llite" else lambda node: node.labelled_targets(kind)


def reads(
    kind: str, name: str, make: Callable[[], Callable[[bytes], Render]], devices: Devices | None = None,
    part: Part = BELOW_TIMES,
) -> Callable[[Context], Collect]:
    """Return the ``start`` of a collector that shows one parameter of each device; ``make`` makes its renderer.

    By default the devices are this node's mounts (``llite``) or targets.
    """
    labelled = devices or _devices_of(kind)

    def start(_: Context) -> Collect:
        source = Source(kind, name, make(), part)
        return lambda node, page: source.collect(node, page, labelled(node))

    return start


def reads_numbers(
    kind: str, families: Mapping[str, Family], devices: Devices | None = None,
    parse: Callable[[bytes], int | None] = natural, convert: Callable[[int], float] = int,
) -> Callable[[Context], Collect]:
    """Return the ``start`` of a collector that shows parameters with one number of each device, by their names."""
    labelled = devices or _devices_of(kind)

    def collect(node: Node, page: MetricsPage) -> None:
        for device, labels in labelled(node):
            for name, family in families.items():
                number = node.number(kind, device, name, parse)
                page.sample(family, labels, None if number is None else convert(number))

    return stateless(collect)


def all_of(*starts: Callable[[Context], Collect]) -> Callable[[Context], Collect]:
    """Return the ``start`` of a collector that does what several do, one after the other."""

    def start(context: Context) -> Collect:
        every = [each(context) for each in starts]

        def collect(node: Node, page: MetricsPage) -> None:
            for each in every:
                each(node, page)

        return collect

    return start
