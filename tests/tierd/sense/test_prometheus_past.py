"""Windows of a past time: gaps, restarts, failover, answers that are too large, and what a Prometheus lacks."""

from dataclasses import replace

import pytest

from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.whatif.past import Kept, Labels, Past, Samples, keeping
from tests.tierd.whatif.past import past as past
from tierd.model import Window
from tierd.sense.exposition import NONROTATIONAL, READ_AT
from tierd.sense.http_client import SourceError
from tierd.sense.prometheus_past import PastWindows, Seen, survey
from tierd.sense.readings import Reading


def read(api: Kept, past: Past, step_seconds: float = 15.0) -> tuple[list[tuple[Window, Reading]], Seen]:
    found = survey(api, past.begin - 3600, past.end + 3600)
    windows = PastWindows(replace(api, fsname=found.fsname), found, step_seconds)
    return list(windows), windows.seen


def written(windows: list[tuple[Window, Reading]], job: str = STREAM.job_id) -> float:
    return sum(load.write_bytes for window, _ in windows for (_, of), load in window.loads.items() if of == job)


def total(samples: Samples, job: str = STREAM.job_id) -> float:
    """The increase of the counters of a job since the first scrape."""
    begin = min(points[0][0] for points in samples.values())
    return sum(points[-1][1] - points[0][1] * (points[0][0] == begin) for labels, points in samples.items()
               if dict(labels)["__name__"] == "lustre_job_write_bytes_total" and dict(labels)["jobid"] == job)


def cut(samples: Samples, begin: float, end: float, of: str = "") -> Samples:
    """Without the samples of a time: of one instance or target, or all."""
    return {labels: [point for point in points if not begin < point[0] <= end or (of and ("target", of) not in labels)]
            for labels, points in samples.items()}


def test_windows_have_all_that_counters_show(past: Past) -> None:
    windows, seen = read(keeping(past.samples), past)
    for job in (STREAM.job_id, NOISE.job_id):
        assert written(windows, job) == pytest.approx(total(past.samples, job))
    assert seen.windows == len(windows) == 39
    assert seen.gap_seconds == 0
    assert {window.seconds for window, _ in windows} == {15.0}
    assert sorted(seen.facts().pools) == ["flash", "hdd"]


@pytest.mark.parametrize("step_seconds", [15.0, 40.0, 60.0])
@pytest.mark.parametrize("most_samples", [500, 5000])
def test_chunks_do_not_change_what_is_read(past: Past, step_seconds: float, most_samples: int) -> None:
    whole, _ = read(keeping(past.samples), past, step_seconds)
    assert [window for window, _ in read(keeping(past.samples, most_samples=most_samples), past, step_seconds)[0]
            ] == [window for window, _ in whole]


def test_times_may_be_moved_to_multiples_of_the_step(past: Past) -> None:
    """As VictoriaMetrics does."""
    moved, _ = read(replace(keeping(past.samples), aligns=True), past, 60.0)
    assert 0.8 * total(past.samples) < written(moved) <= total(past.samples)
    assert [window.seconds for window, _ in moved] == [60.0] * len(moved)


def test_an_answer_that_is_too_large_at_one_time_is_an_error(past: Past) -> None:
    with pytest.raises(SourceError, match="too many samples"):
        read(keeping(past.samples, most_samples=20), past)


def test_a_gap_of_all_scrapes_gives_no_window(past: Past) -> None:
    windows, seen = read(keeping(cut(past.samples, past.begin + 200, past.begin + 400)), past)
    assert 200 < seen.gap_seconds < 240
    assert max(window.seconds for window, _ in windows) <= 30
    assert not any(window.start < past.begin + 300 < window.end for window, _ in windows)


def test_a_target_that_was_not_scraped_is_not_seen(past: Past) -> None:
    windows, _ = read(keeping(cut(past.samples, past.begin + 200, past.begin + 400, "OST0002")), past)
    blind = [window for window, _ in windows if window.unseen == {"lustre-OST0002"}]
    assert len(blind) in range(12, 16)
    assert all(target != "lustre-OST0002" for window in blind for target, _ in window.loads)


def test_a_restart_of_a_server_counts_from_zero(past: Past) -> None:
    restart = past.begin + 300

    def restarted(labels: Labels, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        if not labels[0][1].startswith("lustre_job_") or ("target", "OST0002") not in labels:
            return points
        base = max((value for at, value in points if at <= restart), default=0.0)
        return [(at, value if at <= restart else value - base) for at, value in points]

    samples = {labels: restarted(labels, points) for labels, points in past.samples.items()}
    windows, _ = read(keeping(samples), past)
    assert written(windows) == pytest.approx(total(past.samples))


def test_after_a_failover_the_new_server_counts(past: Past) -> None:
    """Prometheus repeats the old server's samples for five minutes."""
    change = past.begin + 300
    samples: Samples = {}
    for labels, points in past.samples.items():
        if ("target", "OST0002") not in labels or labels[0][1] == "lustre_pool_target_info":
            samples[labels] = points
            continue
        other = tuple((name, "oss02:9169" if name == "instance" else value) for name, value in labels)
        samples[labels] = [point for point in points if point[0] <= change]
        samples[other] = [point for point in points if point[0] > change]
    windows, _ = read(keeping(samples), past)
    lost = [window for window, _ in windows if window.unseen]
    assert [window.unseen for window in lost] == [{"lustre-OST0002"}]
    assert written(windows) == pytest.approx(total(past.samples), rel=0.01)


def test_what_prometheus_lacks_is_named_with_the_remedy(past: Past) -> None:
    with pytest.raises(SourceError, match=r"no lustre_jobs_read_timestamp_seconds\{\}.*--since"):
        survey(keeping(past.samples), past.begin - 7200, past.begin - 3600)
    with pytest.raises(SourceError, match=r'\{fs="other"\} in this time'):
        survey(keeping(past.samples, "other"), past.begin, past.end)
    two = past.samples | {tuple((name, "work" if name == "fs" else value) for name, value in labels): points
                          for labels, points in past.samples.items() if labels[0][1] == READ_AT}
    with pytest.raises(SourceError, match=r"select one: --fs lustre \| work"):
        survey(keeping(two), past.begin, past.end)
    assert survey(keeping(two, "lustre"), past.begin, past.end).scrape_seconds == 15
    _, seen = read(keeping({labels: points for labels, points in past.samples.items()
                            if labels[0][1] != "lustre_ost_recovering"}), past)
    with pytest.raises(SourceError, match="lacks lustre_ost_recovering: let it scrape lustre-exporter on all OSSs"):
        seen.check()


def test_without_pools_all_targets_that_rotate_are_one(past: Past) -> None:
    samples = {labels: points for labels, points in past.samples.items() if labels[0][1] != "lustre_pool_target_info"}
    for labels, points in past.samples.items():
        if labels[0][1] == READ_AT:
            flash = ("target", "OST0000") in labels or ("target", "OST0001") in labels
            samples[("__name__", NONROTATIONAL), *labels[1:]] = [(at, float(flash)) for at, _ in points]
    _, seen = read(keeping(samples), past)
    assert seen.facts().pools == {"": tuple(f"lustre-OST000{number}" for number in range(2, 6))}
