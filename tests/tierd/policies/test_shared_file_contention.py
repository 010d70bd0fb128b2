import pytest

from lustre.fid import Fid
from lustre.layout.model import Component, Layout, StripeObject
from tests.tierd.policies.views import POOLS, halves, look
from tests.tierd.worlds import MIB, TARGETS, stream
from tierd.detect.hints import hints
from tierd.model import Facts, Finding, JobLoad, SharedFile, SharedRuns, Window
from tierd.policies.shared_file_contention import POLICY


def shared(openers: int, stripes: int | None, targets: tuple[str, ...] = TARGETS[:1], job: str = "mpi.5",
           record_bytes: int = MIB, active: set[tuple[str, str, str]] | None = None) -> list[Finding]:
    layout = Layout((Component(pool="hdd", stripe_count=stripes),), composite=False) if stripes else None
    facts = Facts(pools=POOLS, shared_files=(SharedFile(job, "/proj/run/check point", openers, layout),))
    records = [load._replace(sizes={record_bytes: load.writes})
               for load in stream("mpi.5", 40, seconds=30.0, targets=targets)]
    return look(POLICY, halves(records), facts, active or ())


def test_one_stripe_under_many_writers_should_be_striped() -> None:
    (found,) = shared(64, 1)
    assert found.directories == ("/proj/run",)
    assert found.evidence.numbers()["wanted_objects"] == 4
    assert found.sentence.endswith("wait for each other's extent locks")
    assert found.advice[0].command == "lfs setstripe -c 4 -p hdd /proj/run"
    assert found.advice[1].command == "lfs migrate --non-block -c 4 -p hdd '/proj/run/check point'"


def test_on_all_targets_already_it_should_be_overstriped() -> None:
    (found,) = shared(64, 4, TARGETS)
    assert found.advice[0].command == "lfs setstripe -C 64 -p hdd /proj/run"
    assert "64 objects, 16 on each of the 4 targets: one for each node" in found.advice[0].effect


def test_an_input_that_all_processes_keep_open_beside_their_own_files_is_no_contention() -> None:
    on = int(TARGETS[0][-4:], 16)
    layout = Layout((Component(pool="hdd", objects=(StripeObject(on, Fid(1, 1)),)),), composite=False)
    facts = Facts(pools=POOLS, shared_files=(SharedFile("mpi.5", "/proj/in/forcing.nc", 64, layout, 1 << 30),))
    assert look(POLICY, halves(stream("mpi.5", 400, seconds=30.0, targets=TARGETS)), facts) == []
    assert look(POLICY, halves(stream("mpi.5", 400, seconds=30.0, targets=TARGETS[:1])), facts)


def in_runs(runs: int, openers: int = 16, job: str = "mpi.5") -> list[Finding]:
    layout = Layout((Component(pool="hdd", stripe_count=1),), composite=False)
    file = SharedFile(job, "/proj/run/one", openers, layout, 1 << 30)
    facts = Facts(pools=POOLS, shared_runs=(SharedRuns(file, runs, 90.0),))
    idle = [*halves(stream("mpi.5", 40, seconds=30.0, targets=TARGETS[:1])), *halves(count=8)[4:]]
    return look(POLICY, idle, facts)


def test_short_runs_that_have_ended_are_found_from_the_second_on() -> None:
    (found,) = in_runs(2)
    assert (found.aggressor, found.directories) == ("mpi.5", ("/proj/run",))
    assert found.sentence.endswith("in each of 2 runs of its user there")
    assert found.evidence.numbers()["seconds"] == 90.0
    assert in_runs(1) == []
    assert in_runs(2, openers=3) == []
    assert in_runs(2, job="gone.1") == [], "nothing is known of what it moves"


def test_overstriping_that_gives_not_every_node_its_own_object_is_not_advised() -> None:
    assert shared(256, 4, TARGETS)[0].evidence.numbers()["wanted_objects"] == 256, "64 on each target"
    assert shared(257, 4, TARGETS) == []
    assert shared(64, 4, TARGETS, record_bytes=47008) == [], "records of several nodes lie in each object"


def test_targets_replace_an_unreadable_layout() -> None:
    (found,) = shared(64, None, TARGETS[:2])
    assert found.evidence.numbers()["objects"] == 2


@pytest.mark.parametrize(("openers", "stripes"), [(3, 1), (8, 4), (64, 32)])
def test_few_openers_enough_objects_or_no_traffic_are_not_reported(openers: int, stripes: int) -> None:
    assert shared(openers, stripes) == shared(64, 1, job="idle.9") == []


def test_hysteresis() -> None:
    assert shared(14, 4, TARGETS) == []
    assert shared(14, 4, TARGETS, active={("shared-file-contention", "mpi.5", "/proj/run/check point")})


def test_small_records_bring_hints_for_mpi_io_and_hdf5() -> None:
    (found,) = shared(64, None, record_bytes=65536)
    mpi, hdf5 = found.advice[2:]
    assert mpi.command == ("romio_cb_write enable, romio_ds_write disable, cb_nodes 4, striping_factor 4, "
                           "striping_unit 4194304")
    assert "H5Pset_alignment" in hdf5.command
    assert len(shared(64, 1)[0].advice) == 2, "large records need no hints"


@pytest.mark.parametrize(("read_share", "reads", "writes"), [(0.0, False, True), (0.5, True, True), (1.0, True, False)])
def test_hints_are_for_what_the_job_does(read_share: float, reads: bool, writes: bool) -> None:
    mpi, _ = hints("mpi.5", 47008, read_share, 8)
    assert ("romio_cb_read" in mpi.command, "romio_cb_write" in mpi.command) == (reads, writes)
    assert ("MPI_File_read_all" in mpi.effect, "MPI_File_write_all" in mpi.effect) == (reads, writes)
    assert ("striping_factor 8" in mpi.command, " by 1 process, " in hints("m", 9, 0, 1)[0].effect) == (writes, True)


def of_size(size: int | None, stripes: int, windows: list[Window]) -> list[Finding]:
    layout = Layout((Component(pool="hdd", stripe_count=stripes, stripe_size=MIB),), composite=False)
    return look(POLICY, windows, Facts(
        pools=POOLS, shared_files=(SharedFile("mpi.5", "/proj/run/in", 64, layout, size),), job_nodes={"mpi.5": 2}))


def test_a_file_has_no_use_for_more_objects_than_stripes() -> None:
    writes = halves(stream("mpi.5", 40, seconds=30.0, targets=TARGETS[:1]))
    assert of_size(200_000, 1, writes) == []
    (found,) = of_size(2 * MIB, 1, writes)
    assert found.evidence.numbers()["wanted_objects"] == 2
    (found,) = of_size(100 * MIB, 1, writes)
    assert found.evidence.numbers()["wanted_objects"] == 4
    assert of_size(None, 1, writes)


def test_readers_do_not_wait_for_each_others_locks() -> None:
    reads = halves([JobLoad(t, "mpi.5", read_bytes=3e8, reads=300.0) for t in TARGETS])
    assert of_size(100 * MIB, 4, reads) == []
    assert of_size(100 * MIB, 1, reads)[0].sentence.endswith("open on 64 nodes: they wait for the same targets")
    assert of_size(100 * MIB, 4, halves(stream("mpi.5", 40, seconds=30.0)))
