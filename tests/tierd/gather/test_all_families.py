"""Expositions of real and written nodes: each is read, and two alike give twice the growth, and gauges by rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rules import every
from tierd.gather.exposition import Layouts
from tierd.gather.rules import Rule, rule_of
from tierd.gather.scrape import Gather
from tierd.gather.settings import Settings

ROOT = Path(__file__).parents[3]
GOLDEN = sorted((ROOT / "tests/golden").glob("*.prom"))


@every("path", GOLDEN, lambda path: path.stem)
def test_every_exposition_is_read(path) -> None:
    found = Layouts().parse(path.read_bytes())
    assert found.layout.families


def samples(families) -> dict[str, float]:
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for _, lines in families
            for line in lines.decode().splitlines()}


@pytest.mark.parametrize("path", GOLDEN[::4], ids=lambda path: path.stem)
def test_two_nodes_alike(path) -> None:
    text = path.read_bytes()
    later = re.sub(rb"(?m)^(\w+(?:_total|_bucket|_sum|_count)(?:\{.*\})?) (\d+)$",
                   lambda match: b"%b %d" % (match[1], 3 * int(match[2])), text)
    now, time = [text], [1000.0]
    gather = Gather(Settings(targets=("n1:1", "n2:1"), min_interval_seconds=0.0, max_jobs=10_000),
                    lambda _: now[0], lambda: time[0])
    gather.run(60.0)
    now[0], time[0] = later, 10 * 86400.0
    found = samples(gather.run(60.0).families)
    kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text.decode()))
    compared = 0
    for line in text.decode().splitlines():
        name = re.match(r"\w+", line)
        if line.startswith("#") or name is None or not name[0].startswith("lustre_") or "nid=" in line:
            continue
        key, _, value = line.rpartition(" ")
        kind = kinds.get(name[0]) or kinds.get(re.sub(r"_(bucket|sum|count)$", "", name[0]))
        known = found.get(with_added_labels(key, found))
        if kind == "gauge":
            rule = rule_of(name[0])
            if rule is Rule.DROP or name[0] == "lustre_client_job_info":
                continue
            assert known == float(value) * (2 if rule is Rule.SUM else 1), line
        elif kind in {"counter", "histogram"} and value.isdigit():
            assert known == 2 * 2 * int(value), line
        compared += 1
    assert compared > 10


def with_added_labels(key: str, found: dict[str, float]) -> str:
    """The key in the exposition of the gather: with jobid in front, and empty where the gather adds it."""
    name, _, labels = key.partition("{")
    labels = labels.removesuffix("}")
    job = re.search(r'(?:^|,)(jobid="(?:[^"\\]|\\.)*")', labels)
    if job is not None:
        rest = (labels[:job.start()] + labels[job.end():]).removeprefix(",")
        return f"{name}{{{job[1]},{rest}}}" if rest else f"{name}{{{job[1]}}}"
    for candidate in (f'{name}{{jobid="",{labels}}}', f'{name}{{jobid="4711",{labels}}}', key):
        if candidate in found:
            return candidate
    return key
