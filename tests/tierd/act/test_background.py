"""Moves that can wait give way to streams: a stream loses at most its part, and every move is made in the end."""

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lustre.layout.model import Component, Layout
from tests.tierd import simulated
from tests.tierd.act.gate_world import FINDING, World
from tests.tierd.act.movers.minilustre import HDD
from tierd.act.limits import OBJECT_OPERATIONS, BackgroundPace, MoveCost
from tierd.acts import ActKind
from tierd.model import Action, Evidence, Finding, StreamedTarget, StreamedTargets
from tierd.refusal import Reason

EVEN = ("imbalance", "", "fill of l-OST0003")
DRAIN = ("drain", "root", "l-OST0003")
CURE = ("noisy-neighbour", "untar", "ior")
TARGETS = ("l-OST0002", "l-OST0003", "l-OST0004")
BYTE, OPERATION = 1e-8, 0.01


def streamed(**streams: str) -> StreamedTargets:
    """Targets by the last digit, each with the names of its streams."""
    return StreamedTargets({f"l-OST000{number[1:]}": StreamedTarget(tuple(jobs.split()), BYTE, BYTE, OPERATION)
                            for number, jobs in streams.items()}, {"hdd": TARGETS})


def move(source: int, destination: int, size_bytes: int = 100_000_000) -> MoveCost:
    return MoveCost(size_bytes, {"hdd": size_bytes}, {f"l-OST000{source}": size_bytes},
                    {f"l-OST000{destination}": size_bytes})


def pace(drain_part: float = 0.05, streams: StreamedTargets | None = None) -> BackgroundPace:
    found = BackgroundPace(0.01, drain_part)
    found.streamed = streams or streamed(t3="ior")
    return found


@st.composite
def moves(draw: st.DrawFn) -> tuple[tuple[str, str, str], MoveCost, float]:
    size = draw(st.integers(0, 1 << 32))
    targets = draw(st.dictionaries(st.sampled_from(TARGETS), st.integers(0, size), max_size=3))
    written = draw(st.dictionaries(st.sampled_from(TARGETS), st.integers(0, size), max_size=3))
    pool = draw(st.sampled_from(({}, {"hdd": size}, {"other": size})))
    return draw(st.sampled_from((EVEN, DRAIN))), MoveCost(size, {}, targets, written, pool), draw(st.floats(0, 200))


@given(st.lists(moves(), max_size=60), st.floats(0.001, 1), st.floats(0.001, 1),
       st.lists(st.lists(st.sampled_from(("ior", "scan", "late")), max_size=3, unique=True), min_size=3, max_size=3))
def test_a_stream_never_loses_more_than_its_part_and_one_move(
        asked: list[tuple[tuple[str, str, str], MoveCost, float]], part: float, drain_part: float,
        jobs: list[list[str]]) -> None:
    of = dict(zip(TARGETS, jobs, strict=True))
    at = BackgroundPace(part, drain_part)
    at.streamed = StreamedTargets({target: StreamedTarget(tuple(names), BYTE, BYTE, OPERATION)
                                   for target, names in of.items() if names}, {"hdd": TARGETS})
    taken: Counter[tuple[str, bool]] = Counter()
    last: dict[tuple[str, bool], float] = {}
    now = 0.0
    for key, cost, pause in asked:
        now += pause
        if at.refusal(key, cost, now) is None:
            at.spend(key, cost, now)
            for job in {job for names in jobs for job in names}:
                seconds = sum(BYTE * size + OPERATION * (-(-size // (1 << 20)) + OBJECT_OPERATIONS)
                              for sizes in (cost.targets, cost.written) for target, size in sizes.items()
                              if job in of[target])
                size = cost.written_to_pools.get("hdd")
                if size is not None:
                    whole = BYTE * size + OPERATION * (-(-size // (1 << 20)) + OBJECT_OPERATIONS)
                    seconds += whole * sum(job in names for names in jobs) / 3
                if seconds:
                    taken[job, key is DRAIN] += seconds  # type: ignore[assignment]
                    last[job, key is DRAIN] = seconds
    for (job, drain), seconds in taken.items():
        allowed = (drain_part if drain else part) * now
        if (drain_part if drain else part) < 1:
            assert seconds - last[job, drain] <= allowed * (1 + 1e-9) + 1e-9


@given(st.lists(st.integers(0, 1 << 34), min_size=1, max_size=20), st.floats(0.01, 0.99))
def test_a_drain_ends_within_its_copying_time_divided_by_the_part(sizes: list[int], part: float) -> None:
    at, now, seconds = pace(drain_part=part), 0.0, 0.0
    for size in sizes:
        cost = move(3, 4, size)
        now = max(now, seconds / part)  # what the bound promises
        assert at.refusal(DRAIN, cost, now + 1e-6 * (1 + now)) is None
        at.spend(DRAIN, cost, now)
        seconds += BYTE * size + OPERATION * (-(-size // (1 << 20)) + OBJECT_OPERATIONS)


def test_a_move_waits_for_the_streams_of_its_source_and_its_destination_and_says_so() -> None:
    for streams in (streamed(t3="ior"), streamed(t4="ior")):
        at = pace(streams=streams)
        assert at.refusal(EVEN, move(3, 4), 0.0) is None
        at.spend(EVEN, move(3, 4), 0.0)
        refusal = at.refusal(EVEN, move(3, 4), 1.0)
        assert refusal.reason == Reason.STREAMS
        assert "ior" in refusal.sentence
        assert "at most 1%" in refusal.sentence
        assert at.refusal(EVEN, move(2, 5), 1.0) is None, "no stream is there"
        assert at.refusal(DRAIN, move(3, 4), 1.0) is None, "a drain has its own part"
        assert at.refusal(CURE, move(3, 4), 1.0) is None, "a job is slow now"


def test_a_clock_that_is_set_back_makes_no_move_wait_longer() -> None:
    paced, one = pace(), move(3, 4, 0)
    paced.spend(EVEN, one, 1000.0)  # 0.015 s, of which the stream may lose a hundredth
    assert [paced.refusal(EVEN, one, now) is None for now in (1001.0, 1.0, 1.4, 1.6)] == [False, False, False, True]


def test_a_pool_whose_targets_lustre_chooses_counts_by_the_share_of_the_stream() -> None:
    at = pace(streams=streamed(t3="ior"))
    whole = MoveCost(3 << 20, {}, {}, {}, {"hdd": 3 << 20})
    at.spend(EVEN, whole, 0.0)
    seconds = (BYTE * (3 << 20) + OPERATION * (3 + OBJECT_OPERATIONS)) / 3 / 0.01
    assert [at.refusal(EVEN, whole, seconds * share) is None for share in (0.999, 1.001)] == [False, True]


def test_nothing_moves_in_the_background_while_the_streams_are_unknown() -> None:
    at = pace()
    at.streamed = None
    assert at.refusal(EVEN, move(3, 4), 0.0) is not None
    assert at.refusal(CURE, move(3, 4), 0.0) is None


def test_streams_are_unknown_until_the_members_of_pools_are_known(tmp_path: Path) -> None:
    at = simulated.world(tmp_path, jobs=(simulated.STREAM,))
    at.daemon.facts.in_background = True
    at.run(15.0)
    assert at.gate.queue.pace.streamed is None
    at.daemon.facts.gather(at.cluster.epoch)
    at.run(20.0)
    assert at.gate.queue.pace.streamed is not None
    assert at.gate.queue.pace.streamed.pools


def test_a_move_that_gave_way_before_it_copied_takes_nothing() -> None:
    at = pace()
    for give_back in at.spend(EVEN, move(3, 4), 0.0):
        give_back(1.0, 0.0)
    assert at.refusal(EVEN, move(3, 4), 0.1) is None


OTHER_HDD = Layout((Component(pool="hdd", stripe_count=1, ost_list=(3,)),), composite=False)
EVERYWHERE = StreamedTargets({f"lustre-OST000{n}": StreamedTarget(("ior",), 1.0, 1.0, 1.0) for n in range(6)}, {})


def test_the_queue_makes_a_cure_before_hundreds_of_moves_that_wait_for_streams(tmp_path: Path) -> None:
    world = World(tmp_path, pace=BackgroundPace(0.01, 0.05))
    world.gate.queue.note_streams(EVERYWHERE)
    even = Finding("imbalance", 1.0, "", "", ("lustre-OST0002",), "…", Evidence(), subject="fill of lustre-OST0002")
    number = world.journal.add_finding(even)
    for n in range(400):
        world.lustre.create(f"/old{n}", b"x" * 100, HDD)
    world.gate.submit([Action(ActKind.MIGRATE, OTHER_HDD, "even", even.key, "/", f"/old{n}", 100) for n in range(400)],
                      number)
    world.pump()
    assert world.gate.waiting >= 399
    assert world.gate.queue.gives_way
    refusal = world.gate.queue.delay_of(even.key)
    assert "ior" in refusal.sentence
    world.files(1)
    world.submit("/0")
    world.pump()
    assert world.pool("/0") == "flash"
    assert world.gate.queue.delay_of(FINDING.key) is None
    world.gate.queue.note_streams(StreamedTargets())
    world.pump()
    assert world.gate.waiting == 0
    assert not world.gate.queue.gives_way
