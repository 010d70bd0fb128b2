"""A collector: one subsystem's families and how to collect them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exporter.clock import Clock
from exporter.connections import OscTotals
from exporter.exposition import Family, MetricsPage
from exporter.node import Node

Collect = Callable[[Node, MetricsPage], None]
"""Puts what it finds on the page. It may keep state from pass to pass."""


@dataclass(frozen=True, slots=True)
class Context:
    """What collectors are started with."""

    settings: Settings
    osc_totals: OscTotals
    """Sums over object storage clients, which two collectors show."""
    wall: Clock
    """What the kernel's time stamps are compared with."""


@dataclass(frozen=True, slots=True)
class Collector:
    """A subsystem: its flag, its families, and how to start it."""

    name: str
    """Also its flag and its label's value."""
    help: str
    families: tuple[Family, ...]
    start: Callable[[Context], Collect]
    default: bool = True


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
