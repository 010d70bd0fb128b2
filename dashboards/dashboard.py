"""A dashboard: variables on top, rows of panels 24 columns wide, annotations, and links to other dashboards.

Thresholds and annotations that several dashboards use are here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.panels import DATASOURCE, GREEN, ORANGE, RED, YELLOW, Panel, Query, Steps

Json = dict[str, Any]


def datasource() -> Json:
    """The Prometheus data source. A variable works in provisioned files, whatever the name of the data source."""
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "",
            "hide": 0, "refresh": 1, "multi": False, "includeAll": False, "current": {}, "options": []}


def choice(name: str, label: str, query: str, *, everything: bool = True, text: str = "") -> Json:
    """Values of a label. With ``everything``, All can be selected and is the default."""
    made: Json = {
        "name": name, "label": label, "type": "query", "datasource": DATASOURCE, "definition": query,
        "query": {"query": query, "refId": f"variable-{name}"}, "regex": "", "sort": 7, "refresh": 2, "hide": 0,
        "multi": everything, "includeAll": everything, "options": [], "skipUrlSync": False, "description": text,
    }
    if everything:
        made |= {"allValue": ".*", "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    else:
        made["current"] = {}
    return made


FS = choice("fs", "File system", 'label_values({__name__=~"lustre_(filesystem|ost|mdt)_size_bytes"}, fs)')
POOL = choice("pool", "Pool", 'label_values(fs_target:lustre_pool_target:info{fs=~"$fs"}, pool)')
TARGET = choice("target", "Target", 'label_values({__name__=~"lustre_(ost|mdt)_size_bytes", fs=~"$fs"}, target)')
JOB = choice("jobid", "Job", 'label_values(fs_job:lustre_job_bytes:rate2m{fs=~"$fs"}, jobid)',
             text="A Lustre job, by the label jobid (see jobid_var).")
CLIENT = choice("instance", "Client", 'label_values(instance_fs:lustre_llite_bytes:rate2m{fs=~"$fs"}, instance)',
                everything=False, text="For the row One client. The other rows show all clients.")
TAG = "lustre"
UIDS = {
    "glance": "lustre-at-a-glance", "clients": "lustre-clients", "targets": "lustre-targets", "jobs": "lustre-jobs",
    "tiering": "lustre-tiering", "exporters": "lustre-exporters",
}


def dashboard_menu() -> dict[str, Any]:
    """All dashboards of the set, with the time range and variables of this one."""
    return {
        "type": "dashboards", "title": "Lustre", "tags": [TAG], "asDropdown": False, "icon": "external link",
        "keepTime": True, "includeVars": True, "targetBlank": False, "tooltip": "", "url": "",
    }


def link_from_value(board: str, title: str, **variables: str) -> dict[str, Any]:
    """A data link from a value to a dashboard. Each variable is given as the label with its value.

    >>> link_from_value("targets", "This target", target="target")["url"].count("var-target=${__field.labels.target}")
    1
    """
    chosen = "".join(f"&var-{name}=${{__field.labels.{label}}}" for name, label in variables.items())
    return link(board, title, chosen)


def link_from_row(board: str, title: str, **variables: str) -> dict[str, Any]:
    """A data link from a table row to a dashboard. Each variable is given as the heading of its column."""
    chosen = "".join(f'&var-{name}=${{__data.fields["{column}"]}}' for name, column in variables.items())
    return link(board, title, chosen)


def link(board: str, title: str, chosen: str) -> dict[str, Any]:
    """A data link."""
    return {"title": title, "url": f"/d/{UIDS[board]}?${{__url_time_range}}&${{datasource:queryparam}}{chosen}"}


def column_links(column: str, *links: dict[str, Any]) -> dict[str, Any]:
    """Data links on one column of a table."""
    return {"matcher": {"id": "byName", "options": column}, "properties": [{"id": "links", "value": list(links)}]}


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
    """Its short name in :data:`dashboards.dashboard.UIDS`."""
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
            "links": [dashboard_menu()], "annotations": {"list": [a.json() for a in self.annotations]},
            "templating": {"list": [datasource(), *self.chosen]},
            "panels": list(place_panels(self.rows)),
        }


def place_panels(rows: Sequence[Row]) -> Iterator[Json]:
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


FULLNESS: Steps = ((None, GREEN), (0.8, YELLOW), (0.9, ORANGE), (0.95, RED))
"Usage of targets and pools, with the thresholds of the alerts."
ANY_IS_BAD: Steps = ((None, GREEN), (1, RED))
ANY_IS_A_WARNING: Steps = ((None, GREEN), (1, YELLOW))
LOW_IS_BAD: Steps = ((None, RED), (0.5, ORANGE), (0.8, GREEN))
ALERTS = 'ALERTS{alertname=~"(Lustre|Tierd).*", alertstate="firing", severity=~"critical|warning"}'


def alerts_firing() -> Query:
    """Query the number of firing alerts of this set."""
    return Query(f"count({ALERTS}) or vector(0)")


def tierd_events() -> tuple[Annotation, ...]:
    """Mark acts of tierd on the time axis. Each gauge holds only the last event of its kind; counters have totals."""
    def event(name: str, label: str, colour: str, text: str) -> Annotation:
        return Annotation(name, f'(tierd_last_event_timestamp_seconds{{event="{label}"}} > 0) * 1000', colour, text)

    return (
        event("Finding", "finding", "orange", "noisy neighbour found"),
        event("Default layout", "default-layout", "blue", "default layout of a directory set"),
        event("Move", "move", "green", "files moved"),
        event("Undo", "undo", "purple", "act undone"),
        event("Failure", "failure", "red", "act failed"),
    )
