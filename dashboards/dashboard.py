"""A dashboard: variables at the top, then rows of panels, 24 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards import variables
from dashboards.links import TAG, UIDS, menu
from dashboards.panels import DATASOURCE, Panel

Json = dict[str, Any]

SCHEMA = 39
"""Schema of Grafana 10.4. All releases from 10.0 read it."""
COLUMNS = 24


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below a heading. A ``closed`` row sends no queries until it is opened."""

    title: str
    panels: tuple[Panel, ...]
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Annotation:
    """Marks on the time axis, from a query whose values are milliseconds since 1970."""

    name: str
    expr: str
    colour: str
    text: str

    def json(self) -> Json:
        """The annotation as Grafana's JSON."""
        return {
            "name": self.name, "datasource": DATASOURCE, "enable": True, "hide": False, "iconColor": self.colour,
            "expr": self.expr, "useValueForTime": True, "titleFormat": self.name, "textFormat": self.text,
            "tagKeys": "event", "step": "",
        }


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard of the set."""

    name: str
    """Its short name in :data:`dashboards.links.UIDS`."""
    title: str
    description: str
    chosen: tuple[Json, ...]
    """Variables besides the data source."""
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()

    def json(self) -> Json:
        """The whole file."""
        return {
            "uid": UIDS[self.name], "title": self.title, "description": self.description, "tags": [TAG],
            "schemaVersion": SCHEMA, "editable": False, "graphTooltip": 1, "refresh": "30s", "timezone": "browser",
            "time": {"from": "now-3h", "to": "now"}, "timepicker": {}, "fiscalYearStartMonth": 0, "weekStart": "",
            "links": [menu()], "annotations": {"list": [a.json() for a in self.annotations]},
            "templating": {"list": [variables.datasource(), *self.chosen]},
            "panels": list(placed(self.rows)),
        }


def placed(rows: Sequence[Row]) -> Iterator[Json]:
    """Rows and panels with ids and positions, left to right; a panel that does not fit starts a new line."""
    number, y = 0, 0
    for row in rows:
        number += 1
        heading: Json = {"id": number, "type": "row", "title": row.title, "collapsed": row.closed, "panels": [],
                         "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}}
        inside: list[Json] = []
        x, y, height = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            number += 1
            inside.append(panel.json(number, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y = y if row.closed else y + height
        if row.closed:
            heading["panels"] = inside
            yield heading
        else:
            yield heading
            yield from inside
