"""Past rates: recorded while the daemon runs, and asked for over the control socket."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.act.journal.rates import JOBS
from tierd.daemon.answers import MomentAnswer, RatesAnswer
from tierd.daemon.client import ControlError, ask
from tierd.daemon.rates import FRESH_SECONDS
from tierd.rates import Point
from tierd.sense.http_client import SourceError


def rates(site: Site, **wanted: object) -> RatesAnswer:
    return RatesAnswer.from_json(ask(site.socket, {"request": "rates", **wanted}))


def test_what_jobs_and_targets_did_is_recorded(site: Site) -> None:
    site.run(until=400)
    stream = rates(site, job=STREAM.job_id, seconds=3600)
    assert (stream.source, stream.step_seconds, stream.problem) == ("journal", 60, "")
    assert 5 <= len(stream.points) <= 7
    assert all(write > 20e6 and not read for _, read, write, *_ in stream.points[1:])
    noise = rates(site, job=NOISE.job_id).points[-1]
    assert noise[4] > 5  # creates and opens
    moment = MomentAnswer.from_json(ask(site.socket, {"request": "moment"}))
    assert moment.later is None
    assert moment.earlier == moment.time - 60  # type: ignore[operator]
    assert {row.name for row in moment.jobs} == {STREAM.job_id, NOISE.job_id}
    assert "lustre-OST0002" in {row.name for row in moment.targets}
    (row,) = [row for row in moment.targets if row.name == "lustre-OST0002"]
    assert rates(site, target="lustre-OST0002").points[-1][1:] == pytest.approx(
        (row.read_bytes, row.write_bytes, row.operations, row.metadata_operations))
    total = sum(row.write_bytes for row in moment.jobs)
    assert sum(row.write_bytes for row in moment.targets) == pytest.approx(total, rel=1e-3)


def test_the_records_outlive_a_restart(site: Site) -> None:
    site.run(until=200)
    before = rates(site, job=STREAM.job_id).points
    site.restart()
    assert rates(site, job=STREAM.job_id).points == before


@pytest.mark.parametrize(("wanted", "words"), [
    ({}, "names a target or a job"), ({"job": "x" * 2000}, "has a name of 2000 characters"),
    ({"job": "a", "seconds": 5}, "between 1 minute and 30 days"),
    ({"job": "a", "seconds": "nan"}, "between 1 minute and 30 days"), ({"job": "a", "until": 1e300}, "ends at a time"),
    ({"job": "a", "seconds": []}, "is a number")])
def test_a_wrong_question_is_answered_clearly(site: Site, wanted: dict[str, object], words: str) -> None:
    with pytest.raises(ControlError, match=words):
        rates(site, **wanted)


class Remembering:
    """Prometheus, as far as it is asked here."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.problem: SourceError | None = None

    def __call__(self, *asked: object) -> list[Point]:
        self.asked.append(asked)
        if self.problem is not None:
            raise self.problem
        return [(1.0, 2.0, 3.0, 4.0, 5.0)]


@pytest.fixture
def remembering(site: Site) -> Callable[[], Remembering]:
    def restarted() -> Remembering:
        made = Remembering()
        site.service.close()
        site.start()
        site.service.past_rates.prometheus = made
        return made
    return restarted


def test_prometheus_is_asked_first_and_not_at_each_status(site: Site,
                                                          remembering: Callable[[], Remembering]) -> None:
    prometheus = remembering()
    found = rates(site, job="a", seconds=86400)
    assert (found.source, found.points) == ("Prometheus", ((1.0, 2.0, 3.0, 4.0, 5.0),))
    rates(site, job="a", seconds=86400)
    (asked,) = prometheus.asked
    assert asked[:2] == (JOBS, "a")
    assert asked[4] == 300
    site.cluster.advance(FRESH_SECONDS + 1)
    rates(site, job="a", seconds=86400)
    assert len(prometheus.asked) == 2


def test_the_journal_answers_if_prometheus_does_not(site: Site, remembering: Callable[[], Remembering]) -> None:
    prometheus = remembering()
    prometheus.problem = SourceError("http://p:9090: no complete answer within 5 s")
    site.run(until=130)
    found = rates(site, job=STREAM.job_id)
    assert found.source == "journal"
    assert found.points
    assert found.problem == "Prometheus gives no history: http://p:9090: no complete answer within 5 s"
