"""Panels as data: queries, unit, and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}

GREEN, YELLOW, ORANGE, RED, BLUE = "green", "#EAB839", "orange", "red", "blue"
Steps = Sequence[tuple[float | None, str]]
"""Lower bound and colour of each step. The first has None."""

PLAIN: Steps = ((None, GREEN),)


@dataclass(frozen=True, slots=True)
class Query:
    """A query to Prometheus."""

    expr: str
    legend: str = ""
    instant: bool = False
    buckets: bool = False
    """The series are buckets of a histogram."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. ``kind`` is Grafana's panel type."""

    kind: str
    title: str
    description: str
    """What the panel shows, how a bad value looks, and what to do about it."""
    queries: tuple[Query, ...]
    unit: str
    width: int = 12
    height: int = 8
    steps: Steps = PLAIN
    minimum: float | None = 0
    maximum: float | None = None
    decimals: int | None = None
    empty: str = ""
    """Text instead of "No data", where missing data is normal."""
    links: tuple[Json, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[Json, ...] = ()
    transformations: tuple[Json, ...] = ()
    repeat: str = ""
    """Variable whose values repeat the panel."""

    def json(self, number: int, x: int, y: int) -> Json:
        """The panel as Grafana's JSON."""
        made: Json = {
            "id": number, "type": self.kind, "title": self.title, "description": self.description,
            "datasource": DATASOURCE, "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "targets": [target(query, index, self.kind) for index, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": list(self.overrides)},
            "options": dict(self.options),
        }
        if self.transformations:
            made["transformations"] = list(self.transformations)
        if self.repeat:
            made |= {"repeat": self.repeat, "repeatDirection": "h", "maxPerRow": 4}
        return made

    def _defaults(self) -> Json:
        made: Json = {
            "unit": self.unit, "custom": dict(self.custom), "links": list(self.links),
            "color": {"mode": "palette-classic" if self.kind == "timeseries" else "thresholds"},
            "thresholds": {"mode": "absolute", "steps": [{"value": v, "color": c} for v, c in self.steps]},
        }
        for key, value in (("min", self.minimum), ("max", self.maximum), ("decimals", self.decimals)):
            if value is not None:
                made[key] = value
        if self.empty:
            made["noValue"] = self.empty
        return made


def target(query: Query, index: int, kind: str) -> Json:
    """A query as Grafana's JSON."""
    table = kind == "table"
    return {
        "refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": query.expr, "editorMode": "code",
        "legendFormat": query.legend or ("{{le}}" if query.buckets else "__auto"),
        "format": "heatmap" if query.buckets else "table" if table else "time_series",
        "instant": query.instant or table, "range": not (query.instant or table),
    }


def timeseries(title: str, description: str, *queries: Query, unit: str, stack: bool = False, steps: Steps = PLAIN,
               **more: Any) -> Panel:
    """Lines over time. ``stack`` is for parts of a whole. Steps after the first are drawn as lines."""
    custom = {
        "drawStyle": "line", "lineWidth": 1, "fillOpacity": 25 if stack else 8, "showPoints": "never",
        "spanNulls": False, "stacking": {"mode": "normal" if stack else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if len(steps) > 1 else "off"},
    }
    options = {
        "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["mean", "max"], "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return Panel("timeseries", title, description, queries, unit, steps=steps, custom=custom, options=options, **more)


def stat(title: str, description: str, query: Query, *, unit: str, steps: Steps, width: int = 4, height: int = 4,
         **more: Any) -> Panel:
    """One number, coloured if the colour asks for action."""
    options = {
        "colorMode": "background" if len(steps) > 1 else "value", "graphMode": "area", "justifyMode": "center",
        "textMode": "auto", "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    return Panel("stat", title, description, (query,), unit, width, height, steps, options=options, **more)


def bars(title: str, description: str, query: Query, *, unit: str, steps: Steps, **more: Any) -> Panel:
    """The current value of each series as a horizontal bar."""
    options = {
        "displayMode": "lcd", "orientation": "horizontal", "showUnfilled": True, "valueMode": "color",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    return Panel("bargauge", title, description, (query,), unit, steps=steps, options=options, **more)


def heatmap(title: str, description: str, query: Query, *, unit: str, **more: Any) -> Panel:
    """Buckets of a histogram over time. The unit is that of the buckets."""
    options = {
        "calculate": False, "cellGap": 1, "yAxis": {"unit": unit, "axisPlacement": "left"},
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": "dark-orange"},
        "rowsFrame": {"layout": "le"}, "filterValues": {"le": 1e-9}, "legend": {"show": True},
        "tooltip": {"show": True, "yHistogram": True, "mode": "single"}, "showValue": "never",
    }
    return Panel("heatmap", title, description, (query,), unit, options=options, minimum=None, **more)


def table(title: str, description: str, *queries: Query, unit: str, columns: Mapping[str, tuple[str, str]],
          overrides: Sequence[Json] = (), sort: str = "", **more: Any) -> Panel:
    """One row per set of labels. ``columns`` maps a field to its heading and unit; other fields are hidden.

    The values of several queries are the fields ``Value #A``, ``Value #B``; of one query, ``Value``. Rows of
    several queries are merged by common labels. The metric name is removed, because it differs between queries.
    """
    if len(queries) > 1:
        queries = tuple(replace(query, expr=f"max without (__name__) ({query.expr})") for query in queries)
    shown = {name: heading for name, (heading, _) in columns.items()}
    units = tuple(
        {"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": of}]}
        for heading, of in columns.values() if of)
    transformations: list[Json] = [{"id": "merge", "options": {}}] if len(queries) > 1 else []
    transformations += [
        {"id": "filterFieldsByName", "options": {"include": {"names": list(shown)}}},
        {"id": "organize", "options": {"renameByName": shown,
                                       "indexByName": {name: at for at, name in enumerate(shown)}}},
    ]
    options: Json = {"showHeader": True, "footer": {"show": False}}
    if sort:
        options["sortBy"] = [{"displayName": sort, "desc": True}]
    return Panel("table", title, description, queries, unit, options=options, transformations=tuple(transformations),
                 overrides=(*units, *overrides), custom={"align": "auto", "filterable": True}, minimum=None, **more)
