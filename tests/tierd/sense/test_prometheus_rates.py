"""The history of one job or target for a page: what Prometheus is asked, and answers good and bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tierd.sense.clocks import NOW, SettableClock
from tests.tierd.sense.loopback_server import Behave, answers_json, liar
from tests.tierd.sense.real_prometheus import label_text, prometheus_with
from tierd.act.journal.rates import JOBS, TARGETS
from tierd.clock import Clock, SystemClock
from tierd.config.sense import PrometheusSettings, ServerAccess
from tierd.sense.http_client import HttpClient, SourceError
from tierd.sense.prometheus import QueryApi
from tierd.sense.prometheus_rates import PrometheusRates

HOSTILE = 'evil.*|"} or vector(1)\n'


def asking(url: str, clock: Clock | None = None, fs: str = "l", **more: Any) -> PrometheusRates:
    settings = PrometheusSettings(url, access=ServerAccess(max_bytes=1 << 20), **more)
    return PrometheusRates(QueryApi(settings, fs, clock or SettableClock(NOW),
                                    HttpClient(settings.access, 5.0, {}), 5.0, 30.0))


def answer(*series: dict[str, Any], **more: Any) -> Behave:
    return answers_json(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}, **more}))


def test_a_column_that_is_missing_is_no_load() -> None:
    series = {"metric": {"column": "write_bytes"}, "values": [[NOW - 120, "5"], [NOW - 60, "7.5"]]}
    with liar([answer(series), answer()]) as server:
        rates = asking(server.url, matchers='cluster="x"')
        assert rates.of_name(JOBS, "a.1", NOW - 3600, NOW, 60) == [
            (NOW - 120, 0.0, 5.0, 0.0, 0.0), (NOW - 60, 0.0, 7.5, 0.0, 0.0)]
        assert rates.of_name(TARGETS, "l-OST0001", NOW - 3600, NOW, 60) == []
        first, second = server.requests
    assert "/api/v1/query_range" in first
    assert "jobid%3D%22a.1%22%2Ccluster%3D%22x%22" in first
    assert "target%3D%22OST0001%22" in second


@pytest.mark.parametrize(("behave", "words"), [
    (answer(warnings=["store b is down"]), "a partial answer"),
    (answer({"metric": {"column": "write_bytes"}, "values": [[NOW, "NaN"]]}), "impossible value"),
    (answer({"metric": {}, "values": [[NOW, "1"]]}), "invalid data")])
def test_a_bad_answer_is_no_history(behave: Behave, words: str) -> None:
    with liar(behave) as server, pytest.raises(SourceError, match=words):
        asking(server.url).of_name(JOBS, HOSTILE, NOW - 3600, NOW, 60)


def test_a_real_prometheus_understands_the_question(tmp_path: Path) -> None:
    of = f'_total{{fs="lustre",target="OST0002",jobid="{label_text(HOSTILE)}"'
    with prometheus_with(tmp_path, "counter", {
            f"lustre_job_read_bytes{of}}}": lambda at: 1e6 * at, f"lustre_job_write_bytes{of}}}": lambda at: 2e6 * at,
            f'lustre_job_operations{of},operation="read"}}': lambda at: 3.0 * at}) as (url, now):
        points = asking(url, SystemClock(), "lustre").of_name(JOBS, HOSTILE, now - 86_400, now - 600, 300)
    assert len(points) == 287
    assert points[-1][1:] == pytest.approx((1e6, 2e6, 3.0, 0.0))
