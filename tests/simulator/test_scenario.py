from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.scenarios import scenario
from simulator.tables import JOB, Mistake, read
from tierd.cli.simulate import find_scenario


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_of_the_library_runs_and_teaches(name: str) -> None:
    loaded = scenario.library(name)
    assert len(loaded.teaches) > 100
    variants = loaded.variants().values() if name != "large-site" else ()  # test_fluid builds those of 10,000 clients
    for one in (loaded, *variants):
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
        [[job]]
        kind = "mdtest"
        nodes = 3
    """)
    settings = parsed.cluster(7)
    assert settings.pools == {"hdd": (0, 1), "flash": (2,)}
    assert settings.osts[0].capacity.size_bytes == 2 << 40
    assert len({client.instance for client in settings.clients}) == 3
    assert settings.seed == 7
    assert settings.version.startswith("2.15")


@pytest.mark.parametrize(("text", "sentence"), [
    ("cluster = 'moon'\n[[job]]\nkind = 'fly'\n[[job]]\nkind = 'streaming_write'\ncolour = 1",
     "kind 'fly'.*line 6: job 2.colour: there is no such key.*line 1: cluster: 'moon'"),
    ("[cluster]\nrelease='9.9'\nsize=3\n[[cluster.ost]]\ncolour='red'\ndevice.kind='flash'\n[[job]]\nkind='ls'",
     "line 5: cluster.ost 1.colour: .*line 2: cluster.release: .*'9.9'.*line 3: cluster.size: "),
    ("title = \n", "line 1"),
    ("seconds = 'long'\n[[job]]\nkind = 'ls'", r"line 1: seconds: must be a number, not 'long'"),
    ("[[job]]\nkind = 'ls'\nnodes = 0", r"line 3: job 1.nodes: must be greater than or equal to 1, not 0"),
    ("[[job]]\nkind = 'small_files'\nsizes = []", "line 3: job 1.sizes: must have at least 1 item"),
    ("[[job]]\nkind = 'small_files'\nlayout = [{pool = 'nvme'}]", "line 3: job 1.layout: there is no pool 'nvme'"),
    ("[[job]]\nkind = 'small_files'\nfsync = 1", "line 3: job 1.fsync: must be true or false, not 1"),
    ("[[job]]\nkind = 'ls'\n[[job]]\nkind = 'ls'", "job 2.job_id: 'ls.1011' is an earlier job"),
    ("[[job]]\nkind = 'ls'\nstart_seconds = 9\nstop_seconds = 3", "line 4: job 1.stop_seconds: 3 is not after"),
    ("[[job]]\nkind='ls'\n[[event]]\nat = 1\nkind = 'slow'\ntarget = 'OST0099'", "line 6: event 1.target: .*OST0099"),
    ("[[job]]\nkind='ls'\n[[event]]\nat = 1\nkind = 'slow'\ntarget = 5", "line 6: event 1.target: must be a string"),
    ("[[job]]\nkind='ls'\n[[event]]\nat = 1\nkind = 'slow'", "line 3: event 1.target: is missing"),
    ("[[job]]\nkind='ls'\n[cluster]\nfsname = '../..'\n[[cluster.ost]]\ndevice.kind='flash'", "line 4: cluster.fsname"),
    ("[[job]]\nkind='ls'\n[cluster]\n[[cluster.ost]]\npool = '../x'\ndevice.kind='flash'", "line 5: .*ost 1.pool"),
    ("model = 'clay'\n[[job]]\nkind = 'ls'", "line 1: model: must be 'events' or 'flows', not 'clay'"),
    ("extends = 'none'\n[[job]]\nkind = 'ls'", "line 1: extends: 'none' is not one of accelerator"),
    ("model = 'flows'\n[[job]]\nkind = 'small_files'\nburst_seconds = 9", "line 1: .* so burst_seconds needs events"),
    ("[[job]]\nkind='ls'\n[variant.a]\nwithout = ['b']", "line 3: variant.a: there is no job b"),
    ("title = 'empty'", "job: is missing"),
    ("[[job]]\nkind='ls'\n[[event]]\nat=1\nkind='fire'", "event 1: kind 'fire'"),
    ("job = 3", "job: must be a list, not 3"),
    ("cluster = [1]\n[[job]]\nkind='ls'", r"line 1: cluster: \[1\] is not one of"),
    ("[costs]\npreset = [1]\n[[job]]\nkind='ls'", "line 2: costs.preset: .* is not one of"),
    ("[costs]\nprocessors = -1\ncolour = 1\n[[job]]\nkind='ls'",
     "line 2: costs.processors: must be greater than or equal to 0, not -1; line 3: costs.colour: there is no"),
    ("extends = 'noisy-neighbour'\n[[job]]\njob_id = [1]", "line 2: job 3: kind is missing"),
    ("costs = 3\n[[job]]\nkind='ls'", "costs: must be a table, not 3"),
])  # fmt: skip
def test_mistakes_are_reported_with_their_line_and_all_at_once(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        find_scenario(str(file))


@given(st.text(max_size=200))
def test_any_text_is_at_worst_a_mistake(text: str) -> None:
    with pytest.raises(ValueError, match="scenario"):
        scenario.parse(text)


@given(st.dictionaries(
    st.sampled_from(["nodes", "threads", "sizes", "layout", "start_seconds", "job_id", "directory"]),
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5) | st.lists(st.integers(-1, 1), max_size=2)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), max_size=4,
))  # fmt: skip
def test_wrong_values_of_a_job_are_mistakes_and_nothing_else(values: dict[str, object]) -> None:
    wrong: list[Mistake] = []
    job = read(JOB, {"kind": "small_files", **values}, ("job", 0), wrong)
    assert (job is None) == bool(wrong)


def test_a_scenario_extends_one_of_the_library() -> None:
    base = scenario.library("noisy-neighbour-paper-long")
    small = scenario.library("noisy-neighbour-paper-long-1m")
    assert [job.job_id for job in small.jobs] == [job.job_id for job in base.jobs] == ["ior.1002", "mdtest.1001"]
    assert small.jobs[0] == base.jobs[0]
    assert small.jobs[1] == replace(base.jobs[1], sizes=(1 << 20,))  # type: ignore[arg-type]
    assert (small.seconds, base.jobs[1].start_seconds) == (180.0, 70.0)
    assert small.cluster(1) == base.cluster(1) == scenario.library("noisy-neighbour-paper").cluster(1)


def test_an_extended_scenario_gets_further_jobs_and_keeps_what_is_not_named() -> None:
    parsed = scenario.parse("""
        extends = "noisy-neighbour"
        [[job]]
        kind = "ls"
        [[job]]
        job_id = "mdt_small.1001"
        files_per_second = 5.0
    """)
    base = scenario.library("noisy-neighbour")
    assert [job.job_id for job in parsed.jobs] == [*(job.job_id for job in base.jobs), "ls.1011"]
    assert parsed.jobs[1] == replace(base.jobs[1], files_per_second=5.0)  # type: ignore[arg-type]
    assert (parsed.title, parsed.seconds, set(parsed.variants())) == (base.title, base.seconds, set(base.variants()))
