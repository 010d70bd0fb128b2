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


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_of_the_library_runs_and_teaches(name: str) -> None:
    loaded = scenario.library(name)
    assert len(loaded.teaches) > 100
    for one in (loaded, *loaded.variants().values()):
        cluster = one.build()
        cluster.advance(0.2)
        assert cluster.now == 0.2


def test_variants_change_what_they_say_and_nothing_else() -> None:
    variants = scenario.library("noisy-neighbour").variants()
    assert [job.job_id for job in variants["alone"].jobs] == ["ior_stream.1002"]
    contended, covers = variants["contended"], variants["flash_covers"]
    assert contended.jobs == scenario.library("noisy-neighbour").jobs
    assert covers.jobs[0] == contended.jobs[0]
    assert covers.jobs[1].layout != contended.jobs[1].layout


def test_a_machine_is_described_in_tables() -> None:
    parsed = scenario.parse("""
        [cluster]
        release = "2.15"
        [[cluster.ost]]
        count = 2
        pool = "hdd"
        size = "2T"
        device = {kind = "raid", disks = 10}
        [[cluster.ost]]
        pool = "flash"
        device = {kind = "flash"}
        [cluster.client]
        count = 3
        [cluster.spill]
        flash = {target = "hdd", threshold_percent = 50}
        [[job]]
        kind = "mdtest"
        nodes = 3
    """)
    settings = parsed.settings(7)
    assert settings.pools == {"hdd": (0, 1), "flash": (2,)}
    assert settings.osts[0].capacity.size_bytes == 2 << 40
    assert len({client.instance for client in settings.clients}) == 3
    assert settings.seed == 7
    assert settings.version.startswith("2.15")
    assert settings.spills["flash"].threshold_percent == 50


def test_what_is_wrong_with_a_machine_is_said() -> None:
    with pytest.raises(ValueError, match=r"cluster.ost: ost has no colour.*'9.9' is not one of.*has no size"):
        scenario.parse('''
            [cluster]
            release = "9.9"
            size = 3
            [[cluster.ost]]
            colour = "red"
            device = {kind = "flash"}
            [[job]]
            kind = "ls"
        ''')
