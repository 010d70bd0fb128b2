"""Both formats under the strictest readers there are."""

import json
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as text_parser

from exporter import exposition
from exporter.self_metrics import registry
from tests.servers import output_of, program

TREES = ["2.17.57/tree-idle", "2.17.57/tree-load-1"]


def flat(families) -> dict:
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families for sample in family.samples}  # fmt: skip


def test_own_metrics_are_part_of_both(capture, exporter) -> None:
    running = exporter(capture(TREES[0]))
    own = registry(running.scraper)
    result = running.scraper.run()
    text = b"".join(exposition.render(result, own, openmetrics=False)).decode()
    open_text = b"".join(exposition.render(result, own, openmetrics=True)).decode()
    assert open_text.endswith("# EOF\n")
    assert open_text.count("# EOF") == 1
    names = {name for name, _ in flat(text_parser(text))}
    assert {"lustre_exporter_collector_success", "lustre_exporter_build_info"} <= names
    assert names == {name for name, _ in flat(openmetrics_parser(open_text))}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("per_target", [False, True])
def test_promtool_finds_nothing_to_say(capture, exporter, tree, per_target) -> None:
    running = exporter(capture(tree), osc_per_target=per_target, jobs_limit=3)
    text = b"".join(exposition.render(running.scraper.run(), registry(running.scraper), openmetrics=False))
    done = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)


@pytest.mark.parametrize(("accept", "openmetrics"), [
    ("", False),
    ("text/plain;version=0.0.4", False),
    ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", True),
    ("application/openmetrics-text;version=2.0.0", True),
    ("application/openmetrics-text;version=nonsense", False),
])
def test_the_format_is_negotiated(accept, openmetrics) -> None:
    wanted = exposition.negotiate(accept, "")
    assert wanted.openmetrics is openmetrics
    kind = "application/openmetrics-text; version=1.0.0;" if openmetrics else "text/plain"
    assert wanted.content_type.startswith(kind)


def test_an_empty_node_is_a_whole_exposition(grow, exporter) -> None:
    running = exporter(grow({}))
    assert running.scrape() == b""
    assert running.scrape(openmetrics=True) == b"# EOF\n"
    assert running.reasons() == {}
    assert b"".join(exposition.render(running.scraper.run(), CollectorRegistry(), openmetrics=False)) == b""


SIZES = {"a": {4096: 60, 1 << 20: 120}, "b": {16384: 30}, "c": {65536: 7, 1 << 17: 9}}
"""Of three jobs: reads up to that size each minute."""


def test_the_documented_sum_over_jobs_is_right(tmp_path) -> None:
    """As long as it is documented; the plain sum by ``le`` of the same series is not."""
    words = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    query = words[words.index("    sum by (fs, target) (max by") :].split("\n\n")[0]
    bucket = 'lustre_job_io_size_bytes_bucket{{fs="l",target="OST0000",jobid="{}",direction="read",le="{}"}}'
    series = {
        bucket.format(job, le): number
        for job, numbers in SIZES.items()
        for le, number in [*((f"{size}.0", n) for size, n in numbers.items()), ("+Inf", max(numbers.values()))]
    }
    small = sum(max([number for size, number in numbers.items() if size <= 65536]) for numbers in SIZES.values())
    expected = [{"labels": '{fs="l",target="OST0000"}', "value": small / 60}]
    test = {
        "promql_expr_test": [{"expr": " ".join(query.split()), "eval_time": "10m", "exp_samples": expected}],
        "input_series": [{"series": of, "values": f"0+{number}x10"} for of, number in series.items()],
        "interval": "1m",
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": [test]}))
    assert "SUCCESS" in output_of("promtool", "test", "rules", file)


SPARSE = {"lustre_job_io_size_bytes"}
"""Jobs show only buckets that hold something: they would have many more series."""


@pytest.mark.parametrize("per_target", [False, True])
def test_buckets_of_many_series_can_be_added_up(capture, exporter, samples, per_target) -> None:
    text = exporter(capture("2.17.57/tree-load-1"), osc_per_target=per_target).scrape()
    sums: dict[str, dict[float, int]] = {}
    for (name, labels), value in samples(text).items():
        family = name.removesuffix("_bucket")
        if family != name and family not in SPARSE:
            by_bound = sums.setdefault(family, {})
            le = float(dict(labels)["le"])
            by_bound[le] = by_bound.get(le, 0) + int(value)
    assert len(sums) > 10
    for family, by_bound in sums.items():
        counts = [by_bound[le] for le in sorted(by_bound)]
        assert counts == sorted(counts), family
