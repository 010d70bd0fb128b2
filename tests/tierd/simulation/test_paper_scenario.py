"""A stream and a neighbour as in the paper, on the recorded test bed: how much flash, no going to and fro.

How fast: ``tests/tierd/cli/test_simulate.py``. The machine of the paper is in ``test_paper_machine.py``.
"""

from dataclasses import replace

from simulator.fluid.cluster import FluidCluster
from simulator.settings import FLASH_KIB, recorded_test_bed
from tests.tierd.simulated import MIB, NOISE, STREAM
from tierd.config.settings import Settings
from tierd.simulation.run import run

SECONDS = 240.0


def test_flash_takes_little_more_than_the_small_files() -> None:
    pool_bytes, jobs = 2 * FLASH_KIB << 10, (STREAM, NOISE)
    shares = run(FluidCluster(recorded_test_bed(), jobs), jobs, SECONDS, policy=Settings()).pools_used["flash"]
    used = (max(shares) - shares[0]) * pool_bytes
    small_files = (NOISE.keep + NOISE.threads) * NOISE.sizes[0]
    assert NOISE.sizes == (MIB,)
    assert 0.5 * small_files < used <= 1.2 * small_files


def test_other_victims_do_not_set_an_undone_layout_again() -> None:
    """With flash down to its reserve, the layout is undone once, and not set again while the noise continues."""
    policy = Settings()
    policy = replace(policy, small_files_to_flash=replace(policy.small_files_to_flash, reserve=0.72))
    streams = (STREAM, replace(STREAM, job_id="ior_second.1003", path="/proj/flow/second.dat"))
    jobs = (*streams, replace(NOISE, keep=2000))
    found = run(FluidCluster(recorded_test_bed(), jobs), jobs, SECONDS + 60, policy=policy)
    defaults = [e for e in found.entries if e.kind == "set-default-layout"]
    assert [e.outcome for e in defaults] == ["undone"]
    assert len({f.victim for _, f in found.findings if f.kind == "noisy-neighbour"}) == 2
