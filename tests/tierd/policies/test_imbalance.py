from collections.abc import Collection

import pytest

from tests.tierd.policies.views import FLASH, GB, POOLS, filled, halves, look
from tests.tierd.worlds import TARGETS, small_files, small_io, stream
from tierd.model import Facts, Finding, TargetFill
from tierd.policies.imbalance import POLICY


def filling(*used: float, active: bool = False, closed: Collection[str] = ()) -> list[Finding]:
    fill = {t: TargetFill(100 * GB, round(100 * GB * (1 - u))) for t, u in zip(TARGETS, used, strict=True)}
    return look(POLICY, facts=Facts(pools=POOLS, fill=fill, closed=dict.fromkeys(closed, "is being drained")),
                active={("imbalance", "", f"fill of {TARGETS[3]}")} if active else ())


def test_a_target_much_fuller_than_the_others_is_reported() -> None:
    (found,) = filling(0.4, 0.42, 0.41, 0.7)
    assert found.sentence == "lustre-OST0005 is 70% full; the median of the other targets of pool hdd is 41%"
    assert found.targets == (TARGETS[3],)
    assert "lctl set_param osp.lustre-OST0005-osc-MDT*.max_create_count=0" in {a.command for a in found.advice}


@pytest.mark.parametrize(("fullest", "active", "found"), [(0.57, False, False), (0.57, True, True), (0.5, True, False)])
def test_fill_begins_higher_than_it_ends(fullest: float, active: bool, found: bool) -> None:
    assert bool(filling(0.4, 0.4, 0.4, fullest, active=active)) == found


def test_a_target_that_does_most_is_reported_with_its_job() -> None:
    parts = (stream("even.1", 20, seconds=30.0), stream("one.2", 60, seconds=30.0, targets=TARGETS[1:2]))
    (found,) = look(POLICY, halves(*parts))
    assert found.targets == (TARGETS[1],)
    assert found.sentence == (
        "lustre-OST0003 serves 65.0 MB/s; the other targets of pool hdd serve 5.0 MB/s on average; one.2 causes 92% of "
        "the operations on lustre-OST0003")


def test_operations_count_as_well_as_bytes() -> None:
    (found,) = look(POLICY, halves(small_io("fio.1", 90, seconds=30.0, targets=TARGETS[:1])))
    assert found.evidence.numbers()["operations_per_second"] == pytest.approx(90)


@pytest.mark.parametrize(("rate", "targets"), [(200, TARGETS), (2, TARGETS[:1]), (500, FLASH)],
                         ids=["an even pool", "an idle pool", "two pools"])
def test_other_loads_are_not_reported(rate: float, targets: tuple[str, ...]) -> None:
    assert look(POLICY, halves(stream("s.1", rate, seconds=30.0, targets=targets)),
                Facts(pools=POOLS, fill=filled(flash=0.9, hdd=0.1))) == []


def test_flash_and_disks_in_one_more_pool_are_not_compared() -> None:
    pools = {**POOLS, "all": (*FLASH, *TARGETS), "few": TARGETS[:2]}
    fast = halves(small_io("fio.1", 500, seconds=30.0, targets=FLASH[:1]), small_io("fio.2", 500, seconds=30.0,
                                                                                  targets=FLASH[1:]))
    assert look(POLICY, fast, Facts(pools=pools, fill=filled(flash=0.1, hdd=0.8))) == []
    (found,) = look(POLICY, facts=Facts(pools=pools, fill=filled() | {TARGETS[3]: TargetFill(100 * GB, 20 * GB)}))
    assert "of pool hdd" in found.sentence


def test_a_target_that_was_just_added_is_reported() -> None:
    (found,) = filling(0.8, 0.78, 0.81, 0.02)
    assert found.sentence == "lustre-OST0005 is 2% full; the median of the other targets of pool hdd is 80%"
    assert not found.advice_only
    assert [a.command for a in found.advice] == [
        "lfs find MOUNT --pool hdd -size +1G -c 1 -print0 | xargs -0 -n 1 lfs migrate --non-block -p hdd -o 5"]


def test_the_fullest_target_comes_before_the_emptiest_and_a_reported_one_stays() -> None:
    (found,) = filling(0.1, 0.5, 0.5, 0.9)
    assert found.subject == f"fill of {TARGETS[3]}"
    (found,) = filling(0.9, 0.5, 0.5, 0.85, active=True)
    assert found.subject == f"fill of {TARGETS[3]}", "the finding does not jump from one target to another"


def test_no_files_are_advised_onto_a_drained_target() -> None:
    assert filling(0.4, 0.42, 0.41, 0.0)
    assert filling(0.4, 0.42, 0.41, 0.0, closed=TARGETS[3:4]) == []


def test_the_others_are_compared_without_the_drained_ones_and_a_full_one_may_be_without_new_objects() -> None:
    (found,) = filling(0.0, 0.0, 0.4, 0.7, closed=(*TARGETS[:2], TARGETS[3]))
    assert found.targets == TARGETS[3:4]
    assert "the median of the other targets of pool hdd is 40%" in found.sentence
    assert filling(0.1, 0.1, 0.1, 0.7, closed=TARGETS) == []


def test_more_stripes_are_no_advice_for_small_files_and_what_lies_everywhere() -> None:
    for parts in (small_files("m.2", 90, 4096, seconds=30.0, targets=TARGETS[:1]),
                  [load._replace(writes=load.writes * (40 if load.target == TARGETS[0] else 1)) for load in
                   stream("s.1", 40, seconds=30.0)]):
        (found,) = look(POLICY, halves(parts))
        assert found.advice == ()
    (found,) = look(POLICY, halves(stream("one.2", 60, seconds=30.0, targets=TARGETS[:1])))
    assert "lfs setstripe -c 4" in found.advice[0].command
