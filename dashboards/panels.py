"""Panels as data: queries, unit, thresholds, and words for coded values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}

GREEN, YELLOW, ORANGE, RED, BLUE = "green", "#EAB839", "orange", "red", "blue"
NARROW = 8
"""Columns, of 24, of panels with the legend below, which would leave the curves too little room at the side."""
NEUTRAL = "#6e7079"
"""Grey of values that are neither good nor bad, in dark and light."""
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
class Word:
    """What a panel shows instead of the values from ``low`` to ``high``, both included."""

    low: float
    high: float
    text: str
    colour: str


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
    """Text instead of "No data", where missing data is normal. A coloured tile is then grey."""
    words: tuple[Word, ...] = ()
    links: tuple[Json, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[Json, ...] = ()
    transformations: tuple[Json, ...] = ()
    palette: str = "thresholds"
    """Where colours come from: Grafana's colour mode."""

    def json(self, number: int, x: int, y: int) -> Json:
        made: Json = {
            "id": number, "type": self.kind, "title": self.title, "description": self.description,
            "datasource": DATASOURCE, "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "targets": [target(query, index, self.kind) for index, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": list(self.overrides)},
            "options": dict(self.options),
        }
        if self.transformations:
            made["transformations"] = list(self.transformations)
        return made

    def _defaults(self) -> Json:
        made: Json = {
            "unit": self.unit, "custom": dict(self.custom), "links": list(self.links),
            "color": {"mode": self.palette},
            "thresholds": {"mode": "absolute", "steps": [{"value": v, "color": c} for v, c in self.steps]},
        }
        for key, value in (("min", self.minimum), ("max", self.maximum), ("decimals", self.decimals)):
            if value is not None:
                made[key] = value
        if self.empty:
            made["noValue"] = self.empty
        if mappings := list(self._mappings()):
            made["mappings"] = mappings
        return made

    def _mappings(self) -> Sequence[Json]:
        """Words for values, and grey for none: the lowest threshold would colour it."""
        found = [{"type": "range", "options": {"from": word.low, "to": word.high, "result": {
            "text": word.text, "color": word.colour, "index": index}}} for index, word in enumerate(self.words)]
        if self.empty and self.kind in {"stat", "gauge", "bargauge"}:
            found.append({"type": "special", "options": {"match": "null+nan", "result": {
                "text": self.empty, "color": NEUTRAL, "index": len(found)}}})
        return found


def of_cluster(expr: str) -> str:
    """The query with the label ``cluster`` wherever it has ``fs``: two clusters may have file systems of one name.

    >>> of_cluster('sum by (fs) (x{fs=~"$fs"})')
    'sum by (cluster, fs) (x{cluster=~"$cluster", fs=~"$fs"})'
    """
    chosen = expr.replace('fs=~"$fs"', 'cluster=~"$cluster", fs=~"$fs"')
    return re.sub(r"\b(by|on) \((?=[^)]*\bfs\b)", r"\1 (cluster, ", chosen)


def largest(count: int, expr: str) -> str:
    """The series that are largest at the end of the time range: ``topk`` alone draws those of every point in time.

    >>> largest(9, "rate(x{a='b'}[5m])")
    "rate(x{a='b'}[5m]) and topk(9, rate(x{a='b'}[5m] @ end()))"
    """
    at_end = re.sub(r"\}(\[[^]]*\])?", r"\g<0> @ end()", expr)
    return f"{expr} and topk({count}, {at_end})"


def target(query: Query, index: int, kind: str) -> Json:
    table = kind == "table"
    return {
        "refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": of_cluster(query.expr), "editorMode": "code",
        "legendFormat": query.legend or ("{{le}}" if query.buckets else "__auto"),
        "format": "heatmap" if query.buckets else "table" if table else "time_series",
        "instant": query.instant or table, "range": not (query.instant or table),
    }


def timeseries(title: str, description: str, *queries: Query, unit: str, stack: bool = False, steps: Steps = PLAIN,
               by_name: str = "", fill: int = 8, overrides: tuple[Json, ...] = (), links: tuple[Json, ...] = (),
               **more: Any) -> Panel:
    """Lines over time, with a legend at the right, or below a narrow panel, that is sorted by the last value.

    ``stack`` is for parts of a whole. Steps after the first are drawn as lines. ``by_name`` is the label whose value
    is the legend, such as a job, which then has the same colour on all panels.
    """
    custom = {
        "drawStyle": "line", "lineWidth": 1, "fillOpacity": 25 if stack else fill, "showPoints": "never",
        "spanNulls": False, "stacking": {"mode": "normal" if stack else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if len(steps) > 1 else "off"},
    }
    options = {
        "legend": {"displayMode": "table", "placement": "bottom" if more.get("width", 12) <= NARROW else "right",
                   "calcs": ["lastNotNull", "max"], "showLegend": True, "sortBy": "Last *", "sortDesc": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    palette, transformations = "palette-classic", tuple[Json, ...]()
    if by_name:
        palette, transformations = "palette-classic-by-name", (named_by(by_name),)
        queries = tuple(with_name(query, by_name) for query in queries)
        links = tuple({**link, "url": link["url"].replace(f"${{__field.labels.{by_name}}}", "${__field.name}")}
                      for link in links)
    return Panel("timeseries", title, description, queries, unit, steps=steps, custom=custom, options=options,
                 overrides=overrides, palette=palette, transformations=transformations, links=links, **more)


def named_by(label: str) -> Json:
    """Name series by the value of a label.

    Until 10.1, Grafana takes the colour "by series name" from the name of the field. Of Prometheus that is ``Value``,
    so that all series have one colour (grafana/grafana issue 73275).
    """
    return {"id": "labelsToFields", "options": {"mode": "columns", "keepLabels": [label], "valueLabel": label}}


def with_name(query: Query, label: str) -> Query:
    """The query, with its legend as the value of a label.

    >>> with_name(Query("x", "{{victim}} usual"), "jobid").expr
    'label_replace(x, "jobid", "$1 usual", "victim", "(.+)")'
    """
    if query.legend == f"{{{{{label}}}}}":
        return query
    found = re.fullmatch(r"\{\{(\w+)\}\}(.*)", query.legend)
    assert found, query.legend
    expr = f'label_replace({query.expr}, "{label}", "$1{found[2]}", "{found[1]}", "(.+)")'
    return replace(query, expr=expr, legend=f"{{{{{label}}}}}")


def mirrored(title: str, description: str, read: Query, **more: Any) -> Panel:
    """Bytes read, by a query for ``read_bytes``, and below zero bytes written, by the same for ``write_bytes``."""
    written = Query(read.expr.replace("read_bytes", "write_bytes"), f"{read.legend} written")
    flipped = (
        {"matcher": {"id": "byRegexp", "options": "/ written$/"},
         "properties": [{"id": "custom.transform", "value": "negative-Y"}]},
    )
    made = timeseries(title, description, replace(read, legend=f"{read.legend} read"), written, unit="Bps",
                      minimum=None, overrides=flipped, **more)
    return replace(made, custom={**made.custom, "axisCenteredZero": True})


def dashed(ending: str) -> Json:
    """Series whose legend ends with a word are dashed lines in the colour of text: what is usual, a limit.

    They have no links: their names are not those of jobs.
    """
    return {"matcher": {"id": "byRegexp", "options": f"/ {ending}$/"}, "properties": [
        {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
        {"id": "custom.lineWidth", "value": 2},
        {"id": "custom.fillOpacity", "value": 0},
        {"id": "links", "value": []},
        {"id": "color", "value": {"mode": "fixed", "fixedColor": "text"}}]}


def stat(title: str, description: str, *queries: Query, unit: str, steps: Steps, width: int = 4, height: int = 4,
         named: bool = False, sizes: tuple[int, int] | None = None, **more: Any) -> Panel:
    """One number, or one for each series, coloured if the colour asks for action. ``named`` shows the legends too.

    ``sizes`` are those of legend and value in pixels. Grafana chooses them, too small for long legends.
    """
    coloured = len(steps) > 1 or "words" in more
    options: Json = {
        "colorMode": "background" if coloured else "value", "graphMode": "none",
        "justifyMode": "center", "textMode": "value_and_name" if named else "auto", "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    if sizes:
        options["text"] = {"titleSize": sizes[0], "valueSize": sizes[1]}
    return Panel("stat", title, description, queries, unit, width, height, steps, options=options, **more)


def total(title: str, description: str, expr: str, unit: str, width: int = 6) -> Panel:
    return stat(title, description, Query(f"sum({expr})"), unit=unit, steps=((None, "text"),), width=width, height=3,
                sizes=(14, 28))  # so that the text of an empty one fits


def bars(title: str, description: str, query: Query, *, unit: str, steps: Steps, **more: Any) -> Panel:
    """The current value of each series as a horizontal bar."""
    # Grafana makes too little room for names. It measures spaces at their end, and the browser does not show them.
    query = replace(query, legend=query.legend + 5 * " ")
    options = {
        "displayMode": "gradient", "orientation": "horizontal", "showUnfilled": True, "valueMode": "color",
        "minVizWidth": 0, "minVizHeight": 10, "text": {"titleSize": 14, "valueSize": 16},
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    return Panel("bargauge", title, description, (query,), unit, steps=steps, options=options, **more)


def heatmap(title: str, description: str, query: Query, *, unit: str, **more: Any) -> Panel:
    """Buckets of a histogram over time. The unit is that of the buckets."""
    options = {
        "calculate": False, "cellGap": 1, "yAxis": {"unit": unit, "axisPlacement": "left", "reverse": False},
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": "dark-orange",
                  "reverse": False, "scale": "exponential"},
        "rowsFrame": {"layout": "le"}, "filterValues": {"le": 1e-9}, "legend": {"show": True},
        "tooltip": {"show": True, "yHistogram": True}, "showValue": "never", "cellValues": {"unit": "ops"},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
    }
    return Panel("heatmap", title, description, (query,), unit, options=options, minimum=None, **more)


NO_VALUE = "–"
"""Text of a cell without a value in a table that has rows. By default it is the text of an empty table."""
COLUMN_PIXELS = 60
"""Least width of a column. Grafana's own 150 pushes the last column of narrow tables out of sight."""


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
        {"matcher": {"id": "byName", "options": heading}, "properties": [
            *([{"id": "unit", "value": of}] if of else []), {"id": "noValue", "value": NO_VALUE}]}
        for heading, of in columns.values())
    transformations: list[Json] = [{"id": "merge", "options": {}}] if len(queries) > 1 else []
    transformations += [
        {"id": "filterFieldsByName", "options": {"include": {"names": list(shown)}}},
        {"id": "organize", "options": {"renameByName": shown,
                                       "indexByName": {name: at for at, name in enumerate(shown)}}},
    ]
    options: Json = {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"]}}
    if sort:
        options["sortBy"] = [{"displayName": sort, "desc": True}]
    custom = {"align": "auto", "filterable": True, "minWidth": COLUMN_PIXELS, "cellOptions": {"type": "auto"},
              "inspect": False}
    return Panel("table", title, description, queries, unit, options=options, transformations=tuple(transformations),
                 overrides=(*units, *overrides), custom=custom, minimum=None, **more)


def matrix(title: str, description: str, query: Query, *, rows: str, columns: str, unit: str, **more: Any) -> Panel:
    """A table with a row for each value of one label, and a column for each value of another."""
    grouped = {"id": "groupingToMatrix", "options": {"rowField": rows, "columnField": columns, "valueField": "Value",
                                                     "emptyValue": "empty"}}
    options: Json = {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"]}}
    return Panel("table", title, description, (query,), unit, options=options, transformations=(grouped,), minimum=None,
                 **more)


def coloured(column: str, words: Mapping[str, tuple[str, str]]) -> Json:
    """Words and text colours for the values of a column of labels."""
    options = {value: {"text": text, "color": colour, "index": index}
               for index, (value, (text, colour)) in enumerate(words.items())}
    return {"matcher": {"id": "byName", "options": column}, "properties": [
        {"id": "mappings", "value": [{"type": "value", "options": options}]},
        {"id": "color", "value": {"mode": "fixed", "fixedColor": "text"}},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}}]}


def sized(pixels: Mapping[str, int]) -> tuple[Json, ...]:
    return tuple({"matcher": {"id": "byName", "options": column},
                  "properties": [{"id": "custom.width", "value": width}]} for column, width in pixels.items())
