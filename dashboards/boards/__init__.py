"""The dashboards, in the order of the menu."""

from __future__ import annotations

from dashboards.boards import at_a_glance, clients, exporters, jobs, targets, tiering
from dashboards.dashboard import Dashboard

BOARDS: tuple[Dashboard, ...] = (
    at_a_glance.BOARD, clients.BOARD, targets.BOARD, jobs.BOARD, tiering.BOARD, exporters.BOARD,
    clients.SLIM,
)
