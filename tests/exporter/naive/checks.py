"""OI scrub and LFSCK."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tests.exporter.naive.forms import Labels, Sample
from tests.exporter.naive.reader import Reader

SCRUB = {
    "time_since_last_completed": "since_completed_seconds",
    "time_since_latest_start": "since_start_seconds",
    "checked": "checked_objects",
    "failed": "failed_objects",
    "success_count": "completed_total",
    "run_time": "run_seconds",
}
LFSCK = {
    "last_completed_time": "completed_timestamp_seconds",
    "latest_start_time": "start_timestamp_seconds",
    "success_count": "completed_total",
}


def run(prefix: str, labels: Labels, found: dict[str, str], numbers: dict[str, str]) -> Iterator[Sample]:
    """What both tell of a run: its state, its flags, and numbers that may not be known yet."""
    yield f"{prefix}_state", {**labels, "state": found["status"].strip()}, Decimal(1)
    for flag in found["flags"].strip().split(",") if found["flags"] else ():
        yield f"{prefix}_flag", {**labels, "flag": flag}, Decimal(1)
    for key, name in numbers.items():
        if (value := found.get(key, "N/A").split()[0]) != "N/A":
            yield f"{prefix}_{name}", labels, Decimal(value)


def scrubs(reader: Reader) -> Iterator[Sample]:
    for path, file in reader.places("osd-*/*/oi_scrub").items():
        labels = reader.server(path.split("/")[1])
        found = dict(line.split(":", 1) for line in file.read_text().splitlines())
        if not labels:
            continue
        yield from run("lustre_osd_scrub", labels, found, SCRUB)
        for key, name in (("updated", "repaired"), ("inconsistent", "inconsistent")):
            if key in found:
                value = int(found[key]) + int(found[f"prior_{key}"])
                yield f"lustre_osd_scrub_{name}_objects", labels, Decimal(value)


def checks(reader: Reader) -> Iterator[Sample]:
    for kind, parameter in (("mdd", "namespace"), ("mdd", "layout"), ("obdfilter", "layout")):
        for device, text in reader.files(kind, f"lfsck_{parameter}"):
            yield from check({**reader.server(device), "kind": parameter}, text)


def check(labels: Labels, text: str) -> Iterator[Sample]:
    found = dict(line.split(":", 1) for line in text.splitlines())
    yield from run("lustre_lfsck", labels, found, LFSCK)
    for key, name in (("checked", "checked_items"), ("failed", "failed_items"), ("run_time", "run_seconds")):
        for phase in "12":
            value = found[f"{key}_phase{phase}"].split()[0]
            yield f"lustre_lfsck_{name}", {**labels, "phase": phase}, Decimal(value)
    dry = "dryrun" in found["param"]
    problems = {}
    for key, value in found.items():
        if key.startswith("repaired_") or (key.startswith("inconsistent_") and "phase" not in key):
            problems[key.split("_", 1)[1]] = int(value)
        if key.endswith(("_repaired", "_cleared", "_inconsistent", "_inconsistency")):
            problems[key.rsplit("_", 1)[0]] = int(value)
    for problem, number in problems.items():
        if number:
            yield "lustre_lfsck_problems", {**labels, "problem": problem}, Decimal(number)
    total = sum(problems.values())
    if labels["kind"] == "namespace":
        word = "inconsistent" if dry else "updated"
        total = int(found[f"{word}_phase1"]) + int(found[f"{word}_phase2"])
    yield f"lustre_lfsck_{'inconsistent' if dry else 'repaired'}_items", labels, Decimal(total)
