"""tierd over HTTP: its metrics, its health and its page."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site, fetched
from tierd.daemon.page import Pages, Viewer


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready", "/nowhere"])
def test_head_has_the_headers_of_get_and_no_body(site: Site, path: str) -> None:
    site.run(until=10)
    assert site.service.web is not None
    answers = {}
    for method in ("GET", "HEAD"):
        with socket.create_connection(("127.0.0.1", site.service.web.port), timeout=10) as connection:
            connection.sendall(f"{method} {path} HTTP/1.0\r\n\r\n".encode())
            head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
            answers[method] = head.split(b"\r\n")[0], b"Content-Length: " in head, body
    assert answers["HEAD"][:2] == answers["GET"][:2]
    assert answers["GET"][2]
    assert answers["HEAD"][2] == b""


def test_runbooks_open_in_a_browser_even_while_tierd_answers_nothing() -> None:
    def silent(_: object) -> dict[str, object]:
        raise AssertionError("a runbook needs no answer of the daemon")

    pages, folder = Pages(silent), Path(__file__).parents[3] / "docs/runbooks"
    for file in folder.glob("*.md"):
        path = "/runbooks/" if file.stem == "README" else f"/runbooks/{file.stem}"
        body = pages.page(path, {}, Viewer()) or ""
        assert f"<h1>{file.read_text().splitlines()[0].removeprefix('# ')}</h1>" in body
        for link in re.findall(r'href="([A-Za-z]+)\.md"', body):
            assert pages.page(f"/runbooks/{link}.md", {}, Viewer()) is not None
        assert not re.search(r'href="\.\.', body), "links lead to pages that are served"
    for path in ("/runbooks/../index", "/runbooks/Nothing", "/runbooks"):
        assert pages.page(path, {}, Viewer()) is None


def test_metrics_health_and_a_page(site: Site) -> None:
    site.run(until=35)
    _, metrics = fetched(site, "/metrics")
    families = list(text_string_to_metric_families(metrics))
    assert {s.labels.get("fs") for f in families for s in f.samples if s.name.startswith("tierd_")} == {"lustre"}
    samples = {s.name + json.dumps({k: v for k, v in s.labels.items() if k != "fs"}): s.value
               for f in families for s in f.samples}
    assert samples['tierd_findings_total{"kind": "noisy-neighbour"}'] == 1
    assert samples['tierd_default_layouts_total{"outcome": "done"}'] == 1
    assert samples['tierd_dry_run{}'] == 0
    assert samples['tierd_source_blind{"source": "counters"}'] == 0
    assert samples['tierd_breaker_open{}'] == 0
    assert samples['tierd_refusals_total{"reason": "no-room"}'] == 0
    assert samples['tierd_undone_total{}'] == 0
    assert samples['tierd_last_event_timestamp_seconds{"event": "undo"}'] == 0
    begun = samples['tierd_last_event_timestamp_seconds{"event": "default-layout"}']
    assert site.cluster.epoch - 55 < begun <= site.cluster.epoch
    pair = '{"aggressor": "mdt_small.1001", "victim": "ior_stream.1002"}'
    assert samples[f"tierd_victim_usual_bytes_per_second{pair}"] > 1e7
    assert samples[f"tierd_victim_bytes_per_second{pair}"] > 1e6
    slow = [v for k, v in samples.items() if k.startswith("tierd_interference_slowdown") and "OST0003" in k]
    assert slow[0] > 1.2
    assert samples["tierd_claim_generation{}"] == 0
    assert samples["tierd_budget_files{}"] > 0
    assert samples["tierd_journal_bytes{}"] > 4096
    assert 0 <= samples["tierd_changelog_lag_seconds{}"] < 30
    assert samples['tierd_changelog_position{"mdt": "MDT0000"}'] > 100
    assert fetched(site, "/-/healthy") == (200, "OK\n")
    assert fetched(site, "/-/ready") == (200, "OK\n")
    status, page = fetched(site, "/")
    assert status == 200
    assert "mdt_small.1001" in page
    assert "/proj/ingest" in page
    assert fetched(site, "/none")[0] == 404
    assert fetched(site, "/-/evaluate", "POST")[0] == 202
    assert fetched(site, "/", "POST")[0] == 405
    assert fetched(site, "/-/evaluate") == (405, "GET, or POST to /-/evaluate\n")
    assert "F1</a> ior_stream.1002 has" in page
    assert "<p class=\"sentence\">ior_stream.1002 streams at" in page


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on the PATH")
def test_promtool_likes_the_metrics(site: Site) -> None:
    site.run(until=35)
    _, metrics = fetched(site, "/metrics")
    lint = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True, capture_output=True, check=False)
    assert (lint.returncode, lint.stderr) == (0, "")


def test_a_cycle_that_hangs_is_no_sign_of_life(site: Site) -> None:
    site.run(until=35)
    assert site.service.beat()
    site.cluster.stop(STREAM.job_id)  # the rest is only waiting
    site.cluster.stop(NOISE.job_id)
    (observe,) = [activity for activity in site.service.activities.all if activity.driven]
    observe.begun_at = site.service.node.clock.now()
    site.cluster.advance(600)
    assert site.service.beat()
    assert fetched(site, "/-/healthy")[0] == 200
    site.cluster.advance(400)
    assert not site.service.beat()
    assert fetched(site, "/-/healthy")[0] == 503
    observe.begun_at = 0.0
    assert site.service.beat()


def test_every_metric_is_documented(site: Site) -> None:
    _, metrics = fetched(site, "/metrics")
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text(encoding="utf-8")
    names = set(re.findall(r"^# TYPE (tierd_\w+) ", metrics, re.MULTILINE))
    assert len(names) > 35
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
