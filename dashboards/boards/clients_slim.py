"""Clients that run the exporter with ``--profile=slim``: the panels of the dashboard *clients* that have data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dashboards.boards.clients import AHEAD, CONNECTIONS, ONE, TRAFFIC
from dashboards.dashboard import CLIENT, FS, POOL, Dashboard, Row

WITHOUT_DATA = frozenset({
    "Statahead hit ratio", "Lowest statahead hit ratios", "Read-ahead events", "Highest RPC slot usage", "Page cache",
    "Read-ahead memory", "Dirty data and grant", "Metadata operations", "Modifying RPCs in flight", "Locks held",
})  # fmt: skip
"""Panels whose metrics the slim profile does not have."""


def slim(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple([
        replace(row, panels=tuple([panel for panel in row.panels if panel.title not in WITHOUT_DATA])) for row in rows
    ])  # fmt: skip


BOARD = Dashboard(
    "clients-slim", "Lustre: clients, slim",
    "Traffic, connections and read-ahead of clients with the slim profile of the exporter.",
    (FS, POOL, CLIENT), slim((TRAFFIC, CONNECTIONS, AHEAD, ONE)),
)  # fmt: skip
