import pytest

from tests.tierd.policies.views import FLASH, POOLS, filled, halves, look
from tests.tierd.worlds import MIB, TARGETS, small_files, small_io, stream
from tierd.model import Facts, Window
from tierd.policies.small_random_io import POLICY


def test_small_writes_all_over_a_file_are_found_with_what_would_help() -> None:
    (found,) = look(POLICY, halves(small_io("fio.7", 48, seconds=30.0), stream("s.1", 60, seconds=30.0)))
    assert (found.aggressor, found.targets, found.advice_only) == ("fio.7", TARGETS, True)
    assert found.evidence.numbers()["operations_per_mib"] == 256
    assert "48 RPCs/s of 4 KiB" in found.sentence
    assert found.advice[0].command == "lfs migrate --non-block -c 1 -p flash FILE"
    assert not any("romio" in piece.command for piece in found.advice), "a database on one node uses no MPI-IO"


def test_hints_for_mpi_io_need_several_nodes() -> None:
    facts = Facts(pools=POOLS, fill=filled(), job_nodes={"fio.7": 4})
    (found,) = look(POLICY, halves(small_io("fio.7", 48, seconds=30.0)), facts)
    assert any("romio" in piece.command for piece in found.advice)


@pytest.mark.parametrize("windows", [
    pytest.param(halves(stream("s.1", 60, seconds=30.0)), id="a stream"),
    pytest.param(halves(small_files("m.2", 40, 4096, seconds=30.0)), id="whole small files"),
    pytest.param(halves(small_io("fio.7", 48, seconds=30.0, targets=FLASH)), id="on flash"),
    pytest.param(halves(small_io("fio.7", 8, seconds=30.0)), id="a trickle"),
    pytest.param(halves(small_io("fio.7", 30, seconds=30.0), stream("s.1", 300, seconds=30.0)), id="a small part"),
])
def test_other_io_is_not_reported(windows: list[Window]) -> None:
    assert look(POLICY, windows) == []


def test_a_finding_is_held_where_it_would_not_begin() -> None:
    large = [load._replace(sizes={4096: load.writes * 0.55, MIB: load.writes * 0.45}) for load in
             small_io("fio.7", 48, seconds=30.0)]
    assert look(POLICY, halves(large)) == []
    assert look(POLICY, halves(large), active={("small-random-io", "fio.7", "")})


def test_a_hostile_job_id_cannot_disturb_a_terminal() -> None:
    (found,) = look(POLICY, halves(small_io("\x1b[2J\n", 48, seconds=30.0)))
    assert r"'\x1b[2J\n'" in found.sentence
    assert all(piece.where.isprintable() for piece in found.advice)
