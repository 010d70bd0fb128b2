"""The model against measurements: the recorded test bed, the tapes, and the published noisy-neighbour experiment.

Nothing of these results is written into the scenarios or the model.
"""

from collections.abc import Callable

import pytest

from bench.calibration import costs, tapes
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.jobs.large_files import StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.scenarios import scenario
from simulator.settings import recorded_test_bed

STREAM = "ior_stream.1002"
SMALL = "mdt_small.1001"
Measure = Callable[..., float]


@pytest.fixture(scope="module")
def measured() -> Measure:
    done: dict[str, Cluster] = {}

    def measure(tape: str, job_id: str = STREAM) -> float:
        if tape not in done:
            done[tape] = Cluster(recorded_test_bed(seed=1), (StreamingWriter(), *tapes.JOBS[tape]))
            done[tape].advance(60)
        return done[tape].log.mean(job_id, 20, 60)

    return measure


def test_a_stream_alone_gets_what_four_disks_give(measured: Measure) -> None:
    assert measured("control-quiet") == pytest.approx(66.6, rel=0.03)


@pytest.mark.parametrize(("tape", "tolerance"), [
    ("noisy-create-1m", 0.07), ("control-flash-covers", 0.03), ("noisy-flash-too-small", 0.07),
    ("noisy-random-4k", 0.06), ("control-two-streams", 0.03)])
def test_the_stream_keeps_the_recorded_share(tape: str, tolerance: float) -> None:
    recorded = tapes.QUIET_HOST_SHARE.get(tape) or tapes.recorded(tape)
    assert tapes.simulated(tape) == pytest.approx(recorded, abs=tolerance)


def test_the_small_files_keep_their_rate(measured: Measure) -> None:
    assert measured("noisy-create-1m", SMALL) == pytest.approx(20.9, rel=0.05)


@pytest.mark.parametrize("tape", sorted(tapes.JOBS.keys() - {"control-slow-disk"}))
def test_flows_get_what_events_get(measured: Measure, tape: str) -> None:
    flows = FluidCluster(recorded_test_bed(), (StreamingWriter(), *tapes.JOBS[tape]))
    flows.advance(45)
    assert flows.log.mean(STREAM, 20, 45) == pytest.approx(measured(tape), abs=0.1 * 66.6)


def test_reads_of_small_files_load_the_disks_too(measured: Measure) -> None:
    rereading = SmallFileWriter(rereads_per_second=15.0)
    cluster = Cluster(recorded_test_bed(seed=1), (StreamingWriter(), rereading))
    cluster.advance(50)
    assert cluster.log.mean(STREAM, 20, 50) < 0.85 * measured("noisy-create-1m")


def test_a_slow_disk_looks_like_the_recorded_one() -> None:
    cluster = Cluster(recorded_test_bed(seed=1), (StreamingWriter(),))
    cluster.advance(20)
    for index in (2, 3, 4, 5):
        cluster.slow_down(index, 2.0)
    cluster.advance(20)
    assert cluster.log.mean(STREAM, 25, 40) == pytest.approx(32.0, rel=0.1)


@pytest.mark.parametrize("preset", ["measured", "measured_lease"])
@pytest.mark.parametrize("workers", [1, 4])
def test_movers_are_as_fast_as_the_measured_ones(preset: str, workers: int) -> None:
    measured_files_s = {("measured", 1): 5.7, ("measured", 4): 11.1, ("measured_lease", 1): 4.5,
                        ("measured_lease", 4): 10.4}  # fmt: skip
    assert costs.files_per_second(preset, workers) == pytest.approx(measured_files_s[preset, workers], rel=0.1)


@pytest.mark.parametrize(("name", "recorded"), [("crowded-directory", 52.2), ("crowded-directories", 49.0)])
def test_the_neighbours_of_the_measurements_cost_the_stream_what_they_did(name: str, recorded: float) -> None:
    assert costs.stream_rate_with_neighbour(scenario.library(name).build()) == pytest.approx(recorded, rel=0.05)


def test_many_default_layouts_take_as_long_as_they_did() -> None:
    assert costs.default_layout_seconds(scenario.library("crowded-directories").build()) == pytest.approx(84, rel=0.25)


PAPER_STREAM = "ior.1002"


def test_the_machine_of_the_paper_does_what_was_published() -> None:
    rates = {}
    variants = scenario.library("noisy-neighbour-paper").variants()
    for name in ("alone", "contended", "flash_covers", "flash_too_small", "contended_1m"):
        cluster = variants[name].build()
        cluster.advance(3.0)
        rates[name] = cluster.log.mean(PAPER_STREAM, 1, 3)
    alone, contended = rates["alone"], rates["contended"]
    assert alone == pytest.approx(6000, rel=0.05), "'each SSU can deliver more than 12 GB/s', two OSTs each"
    assert 0.70 <= contended / alone <= 0.82, "small files on the same disks cost the stream a quarter"
    assert rates["flash_covers"] >= 0.97 * alone, "a flash component that holds the file gives it back"
    assert rates["flash_too_small"] < 0.95 * contended, "a component too small is worse than none"
    assert rates["contended_1m"] < contended, "small files of a quarter stripe hurt more than their bytes"
