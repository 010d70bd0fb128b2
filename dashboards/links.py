"""Links between dashboards: a menu by tag, and data links from a value to its details."""

from __future__ import annotations

from typing import Any

TAG = "lustre"

UIDS = {
    "glance": "lustre-at-a-glance", "clients": "lustre-clients", "targets": "lustre-targets", "jobs": "lustre-jobs",
    "tiering": "lustre-tiering", "exporters": "lustre-exporters",
}


def menu() -> dict[str, Any]:
    """All dashboards of the set, with the time range and variables of this one."""
    return {
        "type": "dashboards", "title": "Lustre", "tags": [TAG], "asDropdown": False, "icon": "external link",
        "keepTime": True, "includeVars": True, "targetBlank": False, "tooltip": "", "url": "",
    }


def to(board: str, title: str, **variables: str) -> dict[str, Any]:
    """A data link from a value to a dashboard. Each variable is given as the label with its value.

    >>> to("targets", "This target", target="target")["url"].count("var-target=${__field.labels.target}")
    1
    """
    chosen = "".join(f"&var-{name}=${{__field.labels.{label}}}" for name, label in variables.items())
    return link(board, title, chosen)


def from_row(board: str, title: str, **variables: str) -> dict[str, Any]:
    """A data link from a table row to a dashboard. Each variable is given as the heading of its column."""
    chosen = "".join(f'&var-{name}=${{__data.fields["{column}"]}}' for name, column in variables.items())
    return link(board, title, chosen)


def link(board: str, title: str, chosen: str) -> dict[str, Any]:
    """A data link."""
    return {"title": title, "url": f"/d/{UIDS[board]}?${{__url_time_range}}&${{datasource:queryparam}}{chosen}"}


def on(column: str, *links: dict[str, Any]) -> dict[str, Any]:
    """Data links on one column of a table."""
    return {"matcher": {"id": "byName", "options": column}, "properties": [{"id": "links", "value": list(links)}]}
