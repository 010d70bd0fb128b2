from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, inf
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.tierd.worlds import MIB, TARGETS, noise, small_files, small_io, stream, window
from tierd.detect.columns import RecentWindows, pool_numbers, recent_work
from tierd.detect.costs import CostLearner, DeviceCosts
from tierd.detect.gain import Tracks
from tierd.detect.interference import Interference
from tierd.detect.profile import Classes
from tierd.model import UNSEEN, Evidence, Facts, Finding, JobLoad, Window
from tierd.text import Carrier
from tierd.verify.judgement import Act, Doubt, Judgement, Settings, judge, judge_own

SETTINGS = Settings(settle_seconds=10, judge_seconds=30, harm_seconds=20)
FINDING = Finding("noisy-neighbour", 0, "m.2", "s.1", TARGETS, "", noise())
BEGUN = 50.0
ELSEWHERE = ("lustre-OST0010", "lustre-OST0011")
FLASH = ("lustre-OST0000",)
FAR = "lustre-OST0042"
ACT = Act(FINDING, BEGUN, BEGUN, FLASH)
NO_LONGER = BEGUN + 10 + 3 * 30
"""Time from which an effect that is not known stays so."""
OPERATION_SECONDS = (4 / 66e6 - 5e-8) * MIB
COSTS = DeviceCosts((5e-8, 5e-8, OPERATION_SECONDS), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0),
                                                      (0.0, 0.0, (0.3 * OPERATION_SECONDS)**2)))
"""Four targets give a stream 66 MB/s; 20 small files a second take 0.4 of their time."""


def tracked(windows: Sequence[Window], found_at: float = 10.0, acted_at: float = BEGUN) -> Tracks:
    """What the model knows after these windows. ``s.1`` is slow from ``found_at`` until a neighbour goes."""
    recent, model, tracks = RecentWindows(30.0, Classes()), Interference(), Tracks(30.0, 600.0)
    learner = CostLearner({"hdd": COSTS})
    for seen in windows:
        columns = recent.add(seen)
        kinds = recent.kinds()
        names, pool = pool_numbers(recent.targets, Facts(pools={"hdd": (*TARGETS, *ELSEWHERE)}))
        unhealthy = [recent.targets[each] for each in seen.conditions if each in recent.targets]
        table = learner.table(pool, names, np.array(unhealthy, np.int64), writes={}, request_msec=np.zeros(len(pool)))
        model.update(columns, recent_work(recent.windows, kinds, len(recent.jobs.by_number)), kinds, table)
        slowed, acted_for = ([recent.jobs["s.1"]] if begun < seen.end <= until else []
                             for begun, until in ((found_at, acted_at), (acted_at, 1000.0)))
        tracks.add(seen.end, slowed, acted_for, model, recent.jobs.by_number)
    return tracks


def judged(windows: list[Window], now: float = 100.0, on_mdt: bool = False) -> Judgement:
    known = tracked(windows).known
    return judge(replace(ACT, on_mdt=on_mdt), windows, known, now, SETTINGS)


def episode(rate: float, noise: bool = True, other: tuple[float, float] | None = None,
            others_elsewhere: tuple[float, float] | None = None, where: tuple[str, ...] = TARGETS,
            files: int = 20) -> list[Window]:
    """Ten windows of contention and ten after the act: the victim's rate after, another stream before and after.

    ``files``: small files a second after the act, by the neighbour.
    """
    found = []
    for n in range(20):
        later = n >= 10
        parts: list[Any] = [stream("s.1", rate if later else 44)]
        if other:
            parts.append(stream("t.9", other[later], targets=where))
        if others_elsewhere:
            parts += [stream(f"far.{i}", others_elsewhere[later], targets=ELSEWHERE) for i in range(3)]
        noisy = noise or not later
        found.append(window(n, *parts, *([small_files("m.2", files if later else 20,
                                                      targets=FLASH if later else TARGETS)]
                                         if noisy else [])))
    return found


@pytest.mark.parametrize(("windows", "now", "verdict"), [
    *[(episode(rate), 100.0, verdict) for rate, verdict in (
        (66, "helped"), (55, "helped"), (45, "did-not-help"), (20, "cannot-tell"))],
    pytest.param(episode(66), 89.0, "too-early", id="before its time"),
    pytest.param(episode(66, noise=False), 100.0, "cannot-tell", id="the noise has gone"),
    pytest.param([*episode(66)[:14], *episode(66, noise=False)[14:]], 100.0, "cannot-tell", id="the noise goes"),
    pytest.param([window(n, small_files("m.2", 20)) for n in range(20)], 100.0, "cannot-tell", id="no victim"),
])
def test_a_fair_part_of_the_loss_must_be_won_back(windows: list[Window], now: float, verdict: str) -> None:
    assert judged(windows, now).verdict == verdict


def came(rate: float, stays: bool = False) -> list[Window]:
    """As ``episode``, with a neighbour that came while the stream was seen. ``stays``: on the disks, after the act."""
    return [window(n, stream("s.1", 66 if n < 6 else 44 if n < 10 else rate),
                   *([small_files("m.2", 20, targets=TARGETS if n < 10 or stays else FLASH)] if n >= 6 else []))
            for n in range(20)]


@pytest.mark.parametrize("made", [episode, came])
@pytest.mark.parametrize("rate", [66.0, 60.0, 55.0, 51.0])
def test_the_interval_holds_what_the_stream_has_regained(made: Callable[[float], list[Window]], rate: float) -> None:
    found, truth = judged(made(rate)), (rate - 44) / 22
    assert found.verdict == "helped"
    assert found.won_back == pytest.approx(truth, abs=0.1)
    assert found.regained is not None
    _, low, high = found.regained
    assert low <= truth <= high


@pytest.mark.parametrize("made", [episode, came])
@pytest.mark.parametrize("rate", [38.0, 20.0])
def test_a_stream_that_became_even_slower_is_slowed_by_something_else(made: Callable[[float], list[Window]],
                                                                     rate: float) -> None:
    """The node or the disk got busy meanwhile: whether the act helped is not known, so it stands."""
    found = judged(made(rate))
    assert (found.verdict, found.doubt) == ("cannot-tell", Doubt.SLOWER)


@pytest.mark.parametrize(("rate", "files", "verdict"), [
    (20.0, 60, "did-not-help"), (20.0, 22, "cannot-tell"), (66.0, 60, "helped"), (38.0, 60, "cannot-tell")])
def test_a_stream_that_got_slower_was_not_helped_if_the_neighbour_does_more_since(rate: float, files: int,
                                                                                 verdict: str) -> None:
    """As recorded on a Lustre 2.17: on flash the neighbour writes more files, and takes the client of the stream.

    If as much work on the disks would have cost the stream as much, the act stands.
    """
    assert judged(episode(rate, files=files)).verdict == verdict


def test_a_gain_far_below_a_loss_that_was_only_predicted_is_not_undone() -> None:
    """As recorded on a Lustre 2.17: from costs of three windows, 75.6 MB/s were predicted where 50 are possible."""
    windows = episode(48.5)
    guessed = replace(FINDING, evidence=noise(victim_usual_bytes_per_second=75.6e6, loss_low=0.0, loss_high=0.71))
    sure = replace(FINDING, evidence=noise(victim_usual_bytes_per_second=75.6e6, loss_low=0.35, loss_high=0.48))
    verdicts = [judge(replace(ACT, finding=each), windows, tracked(windows).known, NO_LONGER, SETTINGS).verdict
                for each in (guessed, sure)]
    assert verdicts == ["cannot-tell", "did-not-help"]


def test_a_rate_that_one_window_predicted_does_not_say_what_was_lost() -> None:
    """As recorded on a Lustre 2.17: the window of the finding had 22.3 MB/s, those before the act 44 MB/s."""
    evidence = noise(victim_usual_bytes_per_second=29.6e6, victim_bytes_per_second=22.3e6, slowdown=29.6 / 22.3,
                     loss_low=0.2, loss_high=0.3, carrier=Carrier.DEVICE_TIME)
    windows = episode(50)
    found = judge(replace(ACT, finding=replace(FINDING, evidence=evidence)), windows, tracked(windows).known, 100.0,
                  SETTINGS)
    assert found.usual / found.contended == pytest.approx(29.6 / 22.3)
    assert found.won_back == pytest.approx((50 / 44 - 1) / (29.6 / 22.3 - 1), abs=0.1)
    stood = replace(FINDING, evidence=replace(evidence, slowdown=inf))
    assert judge(replace(ACT, finding=stood), windows, tracked(windows).known, 100.0, SETTINGS).usual == 29.6e6


@pytest.mark.parametrize("seed", [3, 5, 10, 11])
def test_the_interval_allows_for_a_stream_that_wanders(seed: int) -> None:
    """By 3% from window to window, as the model has learned before the neighbour came; the act brings nothing."""
    draw, level, windows = Random(seed), 0.0, []
    for n in range(90):
        level += draw.gauss(0, 0.03)
        windows.append(window(n, stream("s.1", (66 if n < 60 else 44) * exp(level)), *(
            [small_files("m.2", 20, targets=TARGETS if n < 70 else FLASH)] if n >= 60 else [])))
    act = replace(ACT, begun_at=350.0, acted_at=350.0)
    found = judge(act, windows, tracked(windows, 300.0, 350.0).known, 450.0, SETTINGS)
    assert found.regained is not None
    assert found.regained[1] <= 0 <= found.regained[2]


@pytest.mark.parametrize("rate", [45.0, 44.0])
def test_a_stream_that_did_not_get_faster_has_regained_nothing(rate: float) -> None:
    """Where the neighbour was always there, b is pulled down. Where it was seen to come, the level falls, and the rate
    decides.
    """
    for made in (episode, came):
        found = judged(made(rate))
        assert found.verdict == "did-not-help"
        assert found.won_back < 0.1
        assert found.regained is not None
        _, low, high = found.regained
        assert low <= (rate - 44) / 22 <= high
    assert high > 0.9, "by the device time that the neighbour takes less it should have regained all"


@pytest.mark.parametrize("rate", [50.0, 66.0, 130.0])
def test_a_gain_that_the_device_time_of_the_neighbour_does_not_account_for_was_not_the_act(rate: float) -> None:
    found = judged(came(rate, stays=True))
    assert found.verdict == "did-not-help"
    assert found.won_back < 0.2
    assert found.regained is not None
    assert found.regained[2] >= min((rate - 44) / 22, 1.0)


def test_a_gain_near_the_threshold_is_measured_longer_and_then_unknown() -> None:
    for made in (episode, came):
        assert judged(made(48.0), now=NO_LONGER - 1).verdict == "too-early"
        found = judged(made(48.0), now=NO_LONGER)
        assert (found.verdict, found.doubt) == ("cannot-tell", Doubt.UNSURE)
        assert found.regained is None, "what cannot be judged has no share"


@pytest.mark.parametrize("elsewhere", [(0.2, 0.02), (20.0, 6.0), (20.0, 50.0), (40.0, 24.0)])
def test_jobs_elsewhere_change_neither_rates_nor_verdict(elsewhere: tuple[float, float]) -> None:
    """As on a real file system: a few small jobs elsewhere went down, and 65.5 MB/s were shown as 131."""
    found = judged(episode(65.5, others_elsewhere=elsewhere))
    assert (found.verdict, found.after) == ("helped", pytest.approx(65.5e6))
    assert found.won_back == pytest.approx(21.5 / 22, abs=0.05)


def test_without_a_posterior_of_before_the_act_nothing_is_known() -> None:
    """As after a restart."""
    windows = episode(66)
    for each in (windows, episode(20)):
        assert judge(ACT, each, {}, 100.0, SETTINGS).verdict == "cannot-tell"
    known = tracked(windows[10:], found_at=60.0).known
    assert judge(ACT, windows, known, 100.0, SETTINGS).verdict == "cannot-tell"


def test_a_rate_that_the_bytes_of_the_whole_time_do_not_bear_out_is_refused() -> None:
    after = [66.0, 66.0, 130.0, 1.0, 130.0, 130.0, 1.0, 130.0, 130.0, 1.0]
    windows = [window(n, stream("s.1", 44 if n < 10 else after[n - 10]),
                      small_files("m.2", 20, targets=TARGETS if n < 10 else FLASH)) for n in range(20)]
    found = judged(windows)
    assert (found.verdict, found.after) == ("cannot-tell", pytest.approx(sum(after[2:]) / 8 * 1e6))


def test_rates_are_over_the_seconds_of_each_target() -> None:
    """Late readings: windows of 5 s whose counters are of 2 and 8 s in turn."""
    late = []
    for n, each in enumerate(episode(66)):
        seconds = 2.0 if n % 2 else 8.0
        loads = {key: JobLoad._make((*key, *[number * seconds / 5 for number in load[2:8]], load.sizes))
                 for key, load in each.loads.items()}
        late.append(replace(each, loads=loads, spans=dict.fromkeys((*TARGETS, *FLASH), seconds)))
    found = judged(late)
    assert (found.verdict, found.after) == ("helped", pytest.approx(66e6))


def test_windows_in_which_a_target_of_the_victim_was_not_seen_do_not_count() -> None:
    windows = []
    for n in range(20):
        unseen = 13 <= n < 16
        parts: list[Any] = [stream("s.1", 66 if n >= 10 else 44),
                            small_files("m.2", 20, targets=TARGETS if n < 10 else FLASH)]
        if not unseen:
            parts.append([JobLoad(FAR, "s.1", write_bytes=1e9, writes=1000.0)])
        windows.append(window(n, *parts, conditions={FAR: UNSEEN} if unseen else None))
    assert judged(windows).after == pytest.approx(66e6 + 1e9 / 5)


@pytest.mark.parametrize("where", [TARGETS, FLASH])
def test_other_jobs_on_these_disks_or_on_flash_must_not_lose(where: tuple[str, ...]) -> None:
    found = judged(episode(66, other=(20, 15), where=where), now=85.0)
    assert (found.verdict, set(found.harmed)) == ("harmed-others", {"t.9"})
    assert found.harmed["t.9"] == pytest.approx(0.25)
    assert judged(episode(66, other=(20, 19), where=where)).verdict == "helped"
    assert judged(episode(66, other=(20, 15), where=ELSEWHERE)).verdict == "helped"


@pytest.mark.parametrize(("rate", "verdict"), [(12.0, "harmed-others"), (16.0, "helped")])
def test_other_jobs_must_not_lose_where_windows_are_long(rate: float, verdict: str) -> None:
    """Prometheus' windows of 15 s: three of them before an act, so that no loss of others counted."""
    made = [window(n, stream("s.1", 44 if n < 8 else 66, 15.0),
                   small_files("m.2", 20, seconds=15.0, targets=TARGETS if n < 8 else FLASH),
                   small_io("db.5", 25 * (20 if n < 8 else rate), seconds=15.0), seconds=15.0) for n in range(14)]
    act = replace(ACT, begun_at=121.0, acted_at=121.0)
    assert judge(act, made, tracked(made, 10.0, 120.0).known, 195.0, Settings()).verdict == verdict


def test_others_are_compared_with_all_earlier_windows_even_if_the_finding_came_late() -> None:
    """By device time a neighbour may be found just before the act. Others were seen beside it for longer."""
    windows = episode(66, other=(20, 15))
    found = judge(ACT, windows, tracked(windows, found_at=45.0).known, 85.0, SETTINGS)
    assert (found.verdict, set(found.harmed)) == ("harmed-others", {"t.9"})


@pytest.mark.parametrize(("when", "verdict"), [(range(12, 20), "helped"), (range(20), "harmed-others")])
def test_a_target_that_fails_over_elsewhere_is_no_harm_by_the_act(when: range, verdict: str) -> None:
    """One that is as full all the time explains nothing."""
    both = (*TARGETS, FAR)
    windows = [window(n, stream("s.1", 66 if n >= 10 else 44), stream("t.9", 12 if n >= 12 else 20, targets=both),
                      small_files("m.2", 20, targets=TARGETS if n < 10 else FLASH),
                      conditions={FAR: "in recovery"} if n in when else None) for n in range(20)]
    assert judged(windows).verdict == verdict


@pytest.mark.parametrize("rates", [
    [30, 15, 22, 28] * 5, [20] * 12 + [20, 8, 12, 10] * 2, [20] * 12 + [15, 0] * 4])
def test_a_job_that_varies_by_itself_is_not_harmed(rates: list[float]) -> None:
    windows = episode(66)
    uneven = [window(n, stream("t.9", rate)) for n, rate in enumerate(rates)]
    both = [Window(w.start, w.end, {**w.loads, **u.loads}, w.namespace) for w, u in zip(windows, uneven, strict=True)]
    assert judged(both).verdict == "helped"


@pytest.mark.parametrize(("rates", "where", "excused"), [
    ((20, 20, 15, 15), ELSEWHERE, True), ((0.2, 0.2, 0.15, 0.15), ELSEWHERE, False),
    ((30, 10, 22, 8), ELSEWHERE, False), ((20, 20, 15, 15), TARGETS, False)])
def test_only_steady_jobs_of_some_size_elsewhere_excuse_a_loss(rates: Sequence[float], where: tuple[str, ...],
                                                               excused: bool) -> None:
    far = [window(n, *(stream(f"far.{i}", rates[n // 10 * 2 + n % 2], targets=where) for i in range(3))).loads
           for n in range(20)]
    windows = [replace(w, loads={**w.loads, **f}) for w, f in zip(episode(66, other=(20, 15)), far, strict=True)]
    known = {"s.1": tracked(windows).known["s.1"]}
    assert ("t.9" in judge(ACT, windows, known, 85.0, SETTINGS).harmed) != excused


def test_another_stream_that_gets_slow_by_itself_is_not_harmed() -> None:
    """The neighbour leaves the disks more than the victim takes: what the other stream lost is its own matter."""
    def beside(victim: float, other: float) -> list[Window]:
        return [window(n, stream("s.1", victim if n >= 10 else 33), stream("t.9", other if n >= 10 else 20),
                       small_files("m.2", 20, targets=TARGETS if n < 10 else FLASH)) for n in range(20)]

    assert judged(beside(36, 12)).harmed == {}
    assert set(judged(beside(66, 12)).harmed) == {"t.9"}, "the victim took it"


def test_a_job_on_flash_pays_only_where_the_aggressor_works_since() -> None:
    windows = [window(n, stream("s.1", 66 if n >= 10 else 44), stream("t.9", 15 if n >= 10 else 20, targets=FLASH),
                      small_files("m.2", 20, targets=TARGETS if n < 10 else ("lustre-OST0001",))) for n in range(20)]
    found = judge(replace(ACT, flash=(*FLASH, "lustre-OST0001")), windows, tracked(windows).known, 100.0, SETTINGS)
    assert (found.verdict, found.harmed) == ("helped", {})


def test_metadata_operations_of_other_jobs_must_not_get_slower() -> None:
    windows = [Window(w.start, w.end, w.loads, {**w.namespace, "db.5": small_files("db.5", 50 if n < 10 else 30)[1]})
               for n, w in enumerate(episode(66))]
    found = judged(windows, on_mdt=True)
    assert found.verdict == "harmed-others"
    assert found.harmed["db.5"] == pytest.approx(0.4)
    assert judged(windows).verdict == "helped", "an act without data on an MDT takes none of its time"
    own = [replace(w, namespace={**w.namespace, "s.1": replace(w.namespace["db.5"], job="s.1")}) for w in windows]
    assert set(judged(own, on_mdt=True).harmed) == {"db.5"}


def test_an_mdt_that_fails_over_is_no_harm_by_the_act() -> None:
    windows = [replace(w, namespace={**w.namespace, "db.5": small_files("db.5", 50 if n < 13 else 30)[1]},
                       conditions={"lustre-MDT0001": "in recovery"} if n >= 13 else {})
               for n, w in enumerate(episode(66))]
    assert judged(windows, on_mdt=True).verdict == "helped"


def test_an_aggressor_whose_data_is_on_the_mdt_is_still_at_work() -> None:
    def silent(rate: float, files: int) -> list[Window]:
        _, names = small_files("m.2", files)
        return [*episode(44)[:10], *(replace(window(n, stream("s.1", rate)), namespace={"m.2": names})
                                     for n in range(10, 20))]

    assert judged(silent(66, 20)).verdict == "cannot-tell"
    assert judged(silent(66, 20), on_mdt=True).verdict == "helped"
    assert judged(silent(20, 60), on_mdt=True).verdict == "did-not-help", "it does more there"


OWN = Finding("small-random-io", 0, "db.4", "", TARGETS, "", Evidence())


def own_episode(before: float, after: float, other: tuple[float, float] | None = None,
                active: range = range(20)) -> list[Window]:
    return [window(n, *([stream("db.4", after if n >= 10 else before)] if n in active else []),
                   *([stream("t.9", other[n >= 10])] if other else []), stream("far.1", 5, targets=ELSEWHERE))
            for n in range(20)]


def own_judged(windows: list[Window], now: float = 100.0) -> Judgement:
    return judge_own(Act(OWN, BEGUN, BEGUN, FLASH), windows, now, SETTINGS, operations=False)


@pytest.mark.parametrize(("before", "after", "verdict"), [
    (20, 40, "helped"), (20, 21.2, "helped"), (20, 20.5, "cannot-tell"), (20, 19, "cannot-tell"),
    (20, 17, "did-not-help"), (20, 1, "did-not-help")])
def test_a_job_is_judged_by_its_own_rate(before: float, after: float, verdict: str) -> None:
    found = own_judged(own_episode(before, after))
    assert found.verdict == verdict
    assert found.won_back == pytest.approx(after / before - 1)


def test_a_job_is_not_judged_by_its_rate_on_a_target_in_recovery() -> None:
    windows = [window(n, stream("db.4", 5 if n >= 12 else 20, targets=(*TARGETS, FAR)),
                      conditions={FAR: "in recovery"} if n >= 12 else None) for n in range(20)]
    ill = [replace(w, conditions={TARGETS[0]: "degraded"}) for w in own_episode(20, 40)]
    assert [own_judged(each).verdict for each in (windows, ill)] == ["too-early", "too-early"]


def test_a_job_that_pauses_is_waited_for_and_compared_with_its_last_run() -> None:
    away = own_episode(20, 40, active=range(10))
    assert own_judged(away).verdict == "too-early"
    assert own_judged(away, now=BEGUN + SETTINGS.moving_seconds).verdict == "cannot-tell"
    assert own_judged(own_episode(20, 40, active=range(10, 20))).verdict == "cannot-tell", "nothing to compare with"
    paused = [w for w in own_episode(20, 40) if not 30 <= w.start < 50]
    assert own_judged(paused).verdict == "helped"


def test_other_jobs_must_not_lose_for_a_job_that_gains() -> None:
    found = own_judged(own_episode(20, 40, other=(20, 15)), now=85.0)
    assert (found.verdict, set(found.harmed)) == ("harmed-others", {"t.9"})
    assert own_judged(own_episode(20, 1), now=75.0).verdict == "too-early", "before its time"
