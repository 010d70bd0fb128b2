"""What jobs got before the start: from answers good and bad, and a real Prometheus."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.tierd.sense.clocks import NOW, SettableClock
from tests.tierd.sense.loopback_server import Behave, liar, matrix
from tests.tierd.sense.real_prometheus import label_text, prometheus_with
from tierd.clock import Clock, SystemClock
from tierd.config.sense import PrometheusSettings, ServerAccess
from tierd.model import JobLoad, Window
from tierd.sense import prometheus_history
from tierd.sense.http_client import HttpClient, SourceError
from tierd.sense.prometheus import QueryApi
from tierd.sense.prometheus_history import BYTES, OPERATIONS, LearnedHistory

HOSTILE = 'evil.*|"} or vector(1)\n'


def seen(*jobs: str) -> Window:
    return Window(NOW, NOW + 5, {("l-OST0000", job): JobLoad("l-OST0000", job, write_bytes=1e6, writes=10.0)
                                 for job in jobs}, {})


def rate(name: str, job: str, *points: tuple[float, float], fs: str = "l", target: str = "OST0000") -> dict[str, Any]:
    return {"metric": {"__name__": name, "fs": fs, "target": target, "jobid": job},
            "values": [[at, str(value)] for at, value in points]}


def api(url: str, clock: Clock | None = None, seconds: float = 5.0, fs: str = "l", **more: Any) -> QueryApi:
    settings = PrometheusSettings(url, access=ServerAccess(max_bytes=8 << 20), **more)
    client = HttpClient(settings.access, seconds, {})
    return QueryApi(settings, fs, clock or SettableClock(NOW), client, seconds, 30.0)


def remembering(*of: Any, **more: Any) -> Callable[[Window, float], LearnedHistory]:
    return partial(prometheus_history.learned_history, api(*of, **more))


def test_rates_become_windows_of_before() -> None:
    series = [rate(BYTES, "a", (NOW - 900, 1e6), (NOW - 600, 2e6)), rate(OPERATIONS, "a", (NOW - 600, 3.0)),
              rate(BYTES, HOSTILE, (NOW - 600, 5.0))]
    with liar(matrix(*series)) as server:
        learned = remembering(server.url, matchers='cluster="x"')(seen("a", HOSTILE), NOW)
        (request,) = server.requests
    early, late = learned.windows
    assert learned.jobs == {"a", HOSTILE}
    assert (early.start, early.end) == (NOW - 1020, NOW - 900)
    assert early.loads == {("l-OST0000", "a"): JobLoad("l-OST0000", "a", write_bytes=120e6)}
    assert late.loads["l-OST0000", "a"] == JobLoad("l-OST0000", "a", write_bytes=240e6, writes=360.0)
    assert late.loads.keys() == {("l-OST0000", "a"), ("l-OST0000", HOSTILE)}
    assert "/api/v1/query_range" in request
    assert "cluster%3D%22x%22" in request
    assert "start=1794913599.000&end=1794999999.000&step=1234.286" in request


@pytest.mark.parametrize(("behave", "words", "matchers"), [
    (matrix(), r"are the rules of alerts/rules/interference\.yml loaded\?", ""),
    (matrix(), r'loaded, and do their series have cluster="x"\?', 'cluster="x"'),
    (matrix(rate(BYTES, "a", (NOW - 600, -1.0))), "impossible value", ""),
])
def test_a_bad_answer_is_not_history(behave: Behave, words: str, matchers: str) -> None:
    with liar(behave) as server, pytest.raises(SourceError, match=words):
        remembering(server.url, matchers=matchers)(seen("a"), NOW)


def test_the_busiest_jobs_are_selected() -> None:
    loads = {("l-OST0000", f"j{n}"): JobLoad("l-OST0000", f"j{n}", write_bytes=float(n), writes=float(5000 - n))
             for n in range(5000)}
    jobs = prometheus_history.busiest(Window(0, 5, loads, {}))
    assert len(jobs) == 2 * prometheus_history.MAX_JOBS
    assert {"j4999", "j0"} <= jobs


def test_with_many_pairs_the_points_are_further_apart() -> None:
    loads = {(f"l-OST{n:04x}", "a"): JobLoad(f"l-OST{n:04x}", "a", write_bytes=1.0) for n in range(2000)}
    with liar(matrix(rate(BYTES, "a", (NOW - 600, 1.0)))) as server:
        remembering(server.url)(Window(NOW, NOW + 5, loads, {}), NOW)
        assert "step=1728" in server.requests[0]


def test_a_real_prometheus_with_a_day_in_it(tmp_path: Path) -> None:
    series: dict[str, Callable[[int], float]] = {}
    for job in ("ior.1", HOSTILE):
        of = f'{{fs="lustre",target="OST0002",jobid="{label_text(job)}"}}'
        series |= {f"{BYTES}{of}": lambda _: 50e6, f"{OPERATIONS}{of}": lambda _: 48.0}
    with prometheus_with(tmp_path, series) as (url, now):
        ask = remembering(url, SystemClock(), 20.0, "lustre")
        learned = ask(Window(now, now + 5, seen("ior.1", HOSTILE).loads, {}), now)
    assert 66 <= len(learned.windows) <= 71
    assert [w.end for w in learned.windows] == sorted(w.end for w in learned.windows)
    assert all(w.loads.keys() == {("lustre-OST0002", "ior.1"), ("lustre-OST0002", HOSTILE)} for w in learned.windows)
    assert {w.loads["lustre-OST0002", "ior.1"].moved_bytes / w.seconds for w in learned.windows} == {50e6}
