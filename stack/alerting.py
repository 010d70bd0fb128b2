"""The demonstration profile of the alerting rules, and the alerts that Prometheus reports.

A site waits ten minutes before it wakes somebody. A demonstration of five minutes cannot: the profile is generated from
``alerts/rules`` and has the same alerts with shorter times.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tierd.text import printable

TIMES_FASTER = 30
MIN_SECONDS = 5
"""No time is shorter: the scrape interval of the stack."""
OF_TIERD = re.compile(r"tierd_\w+(?:\{[^}]*\})?\[(\d+)([smhd])\]")
"""A range of one of tierd's own metrics. Rates of counters keep their ranges: they need several samples."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def write_demonstration_rules(rules: Path, folder: Path) -> Path:
    """Write the demonstration profile of all files of ``rules`` into a folder. Returns the folder."""
    folder.mkdir()
    for file in sorted(rules.glob("*.yml")):
        (folder / file.name).write_text(demonstration(file.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def demonstration(rules: str) -> str:
    r"""A rule file with shorter times in ``for``, ``keep_firing_for`` and ranges of tierd's metrics.

    >>> print(demonstration("for: 10m\nkeep_firing_for: 1h\nexpr: avg_over_time(tierd_paused[5m]) > rate(x[2m])"))
    for: 20s
    keep_firing_for: 120s
    expr: avg_over_time(tierd_paused[10s]) > rate(x[2m])
    """
    shorter = re.sub(r"^(\s*(?:for|keep_firing_for): )(\d+)([smhd])$",
                     lambda found: f"{found[1]}{shorter_seconds(found[2], found[3])}s", rules, flags=re.MULTILINE)
    return OF_TIERD.sub(
        lambda found: found[0].replace(f"[{found[1]}{found[2]}]", f"[{shorter_seconds(found[1], found[2])}s]"), shorter)


def shorter_seconds(number: str, unit: str) -> int:
    """A time of the rules as seconds of the demonstration.

    >>> shorter_seconds("10", "m"), shorter_seconds("2", "m"), shorter_seconds("0", "m")
    (20, 5, 0)
    """
    seconds = int(number) * _SECONDS[unit]
    return max(MIN_SECONDS, seconds // TIMES_FASTER) if seconds else 0


class AlertWatch:
    """Logs each alert of Prometheus when it fires and when it is resolved."""

    def __init__(self, prometheus: str, log: Callable[[str], None]) -> None:
        self._url = f"{prometheus}/api/v1/alerts"
        self._log = log
        self._firing: dict[tuple[tuple[str, str], ...], str] = {}

    def fires(self, name: str) -> bool:
        return any(dict(labels)["alertname"] == name for labels in self._firing)

    def poll(self) -> None:
        """Ask Prometheus once. If it does not answer, nothing is logged and the next call asks again."""
        try:
            with urllib.request.urlopen(self._url, timeout=5) as answer:  # noqa: S310 -- on loopback
                alerts = json.load(answer)["data"]["alerts"]
        except (OSError, ValueError, KeyError):
            return
        firing = {tuple(sorted(alert["labels"].items())): str(alert["annotations"].get("description", ""))
                  for alert in alerts if alert["state"] == "firing"}
        for labels in firing.keys() - self._firing.keys():
            self._log(f"ALERT fires: {dict(labels)['alertname']}: {printable(firing[labels])}")
        for labels in self._firing.keys() - firing.keys():
            self._log(f"ALERT resolved: {dict(labels)['alertname']}")
        self._firing = firing
