from __future__ import annotations

import pytest

from simulator import scenario
from simulator.jobs import SmallFileWriter, StreamingWriter


def test_the_default_of_the_demo() -> None:
    noisy = scenario.library("noisy-neighbour")
    stream, small = noisy.jobs
    assert isinstance(stream, StreamingWriter)
    assert isinstance(small, SmallFileWriter)
    assert small.start_seconds == 30
    assert noisy.teaches
    cluster = noisy.build()
    cluster.advance(60)
    alone = cluster.log.mean(stream.job_id, 10, 30)
    assert cluster.log.mean(stream.job_id, 35, 60) < 0.75 * alone


def test_layouts_are_components() -> None:
    parsed = scenario.parse("""
        [[job]]
        kind = "small_files"
        sizes = [4096, 65536]
        layout = [{extent_end = 1048576, pool = "flash"}, {extent_start = 1048576, pool = "hdd", stripe_count = 2}]
    """)
    (job,) = parsed.jobs
    assert isinstance(job, SmallFileWriter)
    assert job.sizes == (4096, 65536)
    assert job.layout is not None
    assert job.layout.composite
    assert [part.pool for part in job.layout.components] == ["flash", "hdd"]


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"kind 'fly'.*streaming_write has no colour.*cluster: 'moon'"):
        scenario.parse('cluster = "moon"\n[[job]]\nkind = "fly"\n[[job]]\nkind = "streaming_write"\ncolour = 1\n')


def test_a_scenario_without_jobs_is_none() -> None:
    with pytest.raises(ValueError, match="at least one"):
        scenario.parse("title = 'empty'")
