"""What a collector is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exporter.clock import Clock
from exporter.config import Settings
from exporter.families import Family
from exporter.node import Node
from exporter.osc import OscTotals
from exporter.page import Page

Collect = Callable[[Node, Page], None]
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
