from hypothesis import given
from hypothesis import strategies as st

from tierd.act.limits import Budget, GiveBack, MoveCost
from tierd.config.act import Limits, Rate
from tierd.refusal import Refusal

PLENTY = Rate(1e9, 1e15)
TARGETS = ("t0", "t1", "t2")


def take(budget: Budget, cost: MoveCost, now: float) -> Refusal | None:
    wait = budget.why_not(cost, now)
    if wait is None:
        budget.spend(cost, now)
    return wait


def goes(budget: Budget, size_bytes: int, now: float) -> bool:
    return take(budget, MoveCost(size_bytes), now) is None


@st.composite
def costs(draw: st.DrawFn) -> MoveCost:
    size = draw(st.integers(0, 5 << 20))
    pools = draw(st.dictionaries(st.sampled_from(("flash", "hdd")), st.integers(0, size), max_size=2))
    targets = draw(st.dictionaries(st.sampled_from(TARGETS), st.integers(0, size), max_size=3))
    return MoveCost(size, pools, targets)


def within(taken: int, moved: int, largest: int, rate: Rate, seconds: float) -> bool:
    files = max(1.0, rate.files_per_second * 2) + rate.files_per_second * seconds
    return taken <= files + 1e-6 and moved <= rate.bytes_per_second * (seconds + 2) + largest + 1e-3


@given(st.lists(st.tuples(costs(), st.floats(0, 3)), max_size=200), st.floats(0.1, 50), st.floats(1e5, 1e8),
       st.floats(0.1, 50), st.floats(1e5, 1e8))
def test_never_faster_than_allowed_overall_nor_for_any_pool_or_target(
        files: list[tuple[MoveCost, float]], files_s: float, bytes_s: float, part_files_s: float, part_bytes_s: float,
) -> None:
    part = Rate(part_files_s, part_bytes_s)
    limits = Limits(files_s, bytes_s, 2.0, per_pool=part, per_target=part, pools={"flash": Rate(1.0, 1e6)})
    now, budget = 100.0, Budget(limits, 100.0)
    gone: list[MoveCost] = []
    for cost, pause in files:
        now += pause
        if take(budget, cost, now) is None:
            gone.append(cost)
    seconds = now - 100.0
    sizes = [cost.size_bytes for cost in gone]
    assert within(len(sizes), sum(sizes), max(sizes, default=0), Rate(files_s, bytes_s), seconds)
    for name in ("flash", "hdd"):
        sizes = [cost.pools[name] for cost in gone if name in cost.pools]
        assert within(len(sizes), sum(sizes), max(sizes, default=0), limits.pools.get(name, part), seconds)
    for name in TARGETS:
        sizes = [cost.targets[name] for cost in gone if name in cost.targets]
        assert within(len(sizes), sum(sizes), max(sizes, default=0), part, seconds)


@given(costs(), st.floats(0.01, 10), st.floats(1e4, 1e7))
def test_every_file_goes_in_the_end(cost: MoveCost, files_s: float, bytes_s: float) -> None:
    rate = Rate(files_s, bytes_s)
    budget = Budget(Limits(files_s, bytes_s, 2.0, per_pool=rate, per_target=rate), 0.0)
    assert take(budget, cost, 0.0) is None
    later = 1 / files_s + cost.size_bytes / bytes_s + 3.0
    assert take(budget, cost, later) is None


def test_a_refusal_takes_nothing_and_names_the_limit() -> None:
    budget = Budget(Limits(1.0, 1e6, burst_seconds=1.0), 0.0)
    assert goes(budget, 10, 0.0)
    wait = take(budget, MoveCost(10), 0.1)
    assert (wait.sentence, wait.what) == ("the limit of 1 files/s is reached", "")
    assert goes(budget, 10, 1.1)
    assert (budget.all.left(1.1), budget.all.left(5.0)) == ((0.0, 1e6 - 10), (1.0, 1e6))


def test_a_pool_may_have_a_rate_of_its_own() -> None:
    budget = Budget(Limits(100.0, 1e9, 1.0, per_pool=PLENTY, pools={"flash": Rate(1.0, 1e9)}), 0.0)
    assert take(budget, MoveCost(10, {"flash": 10}), 0.0) is None
    assert take(budget, MoveCost(10, {"hdd": 10}), 0.0) is None
    wait = take(budget, MoveCost(10, {"flash": 0}), 0.0)
    assert wait.sentence == "pool flash: the limit of 1 files/s is reached"


def test_after_a_clock_is_set_back_tokens_come_at_their_rate() -> None:
    budget = Budget(Limits(1.0, 1e6, burst_seconds=1.0), 100.0)
    assert [now for now in (100.0, 50.0, 50.5, 51.0, 51.5, 52.0) if goes(budget, 10, now)] == [100.0, 51.0, 52.0]


def test_tokens_of_copied_bytes_are_not_returned() -> None:
    budget = Budget(Limits(100.0, 1e6, burst_seconds=1.0), 0.0)
    assert budget.why_not(MoveCost(8_000_000), 0.0) is None
    budget.spend(MoveCost(8_000_000), 0.0)[0](0.5, 0.0)
    assert not goes(budget, 1_000_000, 3.9)
    assert goes(budget, 1_000_000, 4.0)


@given(st.lists(st.tuples(st.integers(0, 50_000_000), st.floats(0, 5), st.floats(0, 60),
                          st.sampled_from((0.0, 0.0, 0.3, 1.0))), max_size=60), st.floats(1e5, 1e7), st.floats(0.5, 5))
def test_no_more_bytes_are_copied_than_the_budget_though_moves_give_way(
        moves: list[tuple[int, float, float, float]], rate: float, burst: float) -> None:
    """Each has a size, a pause before, the time until it ends, and the share that is copied."""
    budget = Budget(Limits(1e9, rate, burst, per_pool=PLENTY, per_target=PLENTY), 0.0)
    under_way: list[tuple[float, GiveBack, float]] = []
    now = total = 0.0
    largest = max((size for size, *_ in moves), default=0)
    for size, pause, seconds, share in moves:
        now += pause
        for ends, spent, copied_share in sorted(under_way, key=lambda each: each[0]):
            if ends <= now:
                spent(1 - copied_share, ends)
        under_way = [each for each in under_way if each[0] > now]
        if budget.why_not(MoveCost(size), now) is None:
            under_way.append((now + seconds, budget.spend(MoveCost(size), now)[0], share))
            total += size * share
            assert total <= rate * (now + burst) + largest + 1.0
