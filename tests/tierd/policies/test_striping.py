import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.policies.views import FLASH, POOLS, filled, found_by, halves, look
from tests.tierd.worlds import MIB, TARGETS, small_files, stream
from tierd.detect.view import View
from tierd.model import DirectoryActivity, Facts, Finding, JobLoad
from tierd.policies.striping import POLICY


def small(stripes: int, creates: int = 1000) -> list[Finding]:
    layout = Layout((Component(stripe_count=stripes),), composite=False)
    facts = Facts(pools=POOLS, fill=filled(), default_layouts={"/proj/many": layout}, directories=(
        DirectoryActivity("m.2", "/proj/many", creates=creates),))
    return look(POLICY, halves(small_files("m.2", 20, 64 << 10, seconds=30.0)), facts)


@pytest.mark.parametrize("stripes", [4, -1])
def test_small_files_with_several_objects_each_are_reported(stripes: int) -> None:
    (found,) = small(stripes)
    assert "m.2 creates small files in /proj/many, 1000 recently" in found.sentence
    assert found.advice[0].command.startswith("lfs setstripe -c 1 /proj/many")


def test_a_stream_to_one_of_several_targets_is_reported() -> None:
    (found,) = look(POLICY, halves(stream("big.1", 90, seconds=30.0, targets=TARGETS[:1])))
    assert found.sentence == "big.1 moves 100% of its bytes, 90.0 MB/s, on lustre-OST0002; the pool has 4 targets"
    assert found.advice[0].command == "lfs setstripe -c 4 -p hdd DIRECTORY"


@pytest.mark.parametrize(("rate", "targets", "reported"), [
    (25 * 1.048576, TARGETS[:1], True), (20, TARGETS[:1], False), (400, TARGETS, False)],
    ids=["the stream of the guide", "a slow stream", "a stream over all targets"])
def test_a_stream_is_reported_from_25_mib_a_second(rate: float, targets: tuple[str, ...], reported: bool) -> None:
    assert bool(look(POLICY, halves(stream("big.1", rate, seconds=30.0, targets=targets)))) == reported


@pytest.mark.parametrize(("streams", "reported"), [(1, 1), (2, 2), (4, 0)])
def test_streams_on_a_target_each_are_left_alone_where_all_are_busy(streams: int, reported: int) -> None:
    loads = [load for n in range(streams) for load in stream(f"big.{n}", 90, seconds=30.0, targets=TARGETS[n:n + 1])]
    assert len(look(POLICY, halves(loads))) == reported


def test_a_command_names_one_directory_at_most() -> None:
    view = View(halves(stream("big.1", 90, seconds=30.0, targets=TARGETS[:1])), Facts(pools=POOLS), lambda *_: [
        DirectoryActivity("big.1", f"/d/{n}", creates=9) for n in range(3)])
    (found,) = found_by(POLICY, view)
    assert found.directories == ("/d/0", "/d/1", "/d/2")
    assert found.advice[0].command == "lfs setstripe -c 4 -p hdd DIRECTORY", "it was '/d/0, /d/1, /d/2'"


def small_files_on(targets: tuple[str, ...], files_per_second: float = 5, end: int | None = None) -> list[Finding]:
    layout = Layout((Component(0, end), *([Component(end)] if end else [])))
    view = View(halves(small_files("m.2", files_per_second, 64 << 10, seconds=30.0, targets=targets)), Facts(
        pools=POOLS, default_layouts={"/d": layout}), lambda *_: [DirectoryActivity("m.2", "/d", creates=9)])
    return list(found_by(POLICY, view))


def test_few_small_files_belong_on_one_target() -> None:
    (found,) = small_files_on(TARGETS)
    assert found.sentence.startswith("m.2 closes 5 small files a second on 4 targets; the busiest, lustre-OST0005, has")
    assert (found.advice_only, found.advice[0].command) == (True, "lfs setstripe -c 1 -i 5 -p hdd /d")


@pytest.mark.parametrize("found", [
    pytest.param(small(1) + small(4, creates=10), id="one stripe, or few files"),
    pytest.param(look(POLICY, halves(small_files("m.2", 5, 64 << 10, seconds=30.0), stream("s.1", 200, seconds=30.0))),
                 id="beside another job"),
    pytest.param(small_files_on(TARGETS[:1]), id="on one target"),
    pytest.param(small_files_on(TARGETS, end=MIB), id="in a composite default layout, which a plain one replaces"),
    pytest.param(small_files_on(FLASH), id="on flash"),
    pytest.param(small_files_on(TARGETS, 60), id="more than one target should serve"),
])
def test_well_placed_small_files_are_not_reported(found: list[Finding]) -> None:
    assert found == []


def test_readers_of_existing_files_are_advised_to_move_them() -> None:
    (found,) = look(POLICY, halves([JobLoad(TARGETS[0], "big.1", read_bytes=3e9, reads=3000.0)]))
    assert found.advice[0].command == "lfs migrate --non-block -c 4 -p hdd FILE"
