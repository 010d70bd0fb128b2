from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tierd.worlds import TARGETS, noise, small_files, stream, window
from tierd.model import UNSEEN, Finding, JobLoad, Window
from tierd.verify.judgement import Act, Judgement, Settings, judge, judge_own

SETTINGS = Settings(settle_seconds=10, judge_seconds=30, harm_seconds=20)
FINDING = Finding("noisy-neighbour", 0, "m.2", "s.1", TARGETS, "", noise())
BEGUN = 50.0
ELSEWHERE = ("lustre-OST0010", "lustre-OST0011")
FLASH = ("lustre-OST0000",)


def judged(windows: list[Window], now: float = 100.0) -> Judgement:
    return judge(Act(FINDING, BEGUN, BEGUN, FLASH), windows, now, SETTINGS)


def episode(rate: float, noise: bool = True, other: tuple[float, float] | None = None,
            others_elsewhere: tuple[float, float] | None = None, where: tuple[str, ...] = TARGETS) -> list[Window]:
    """Ten windows of contention and ten after the act: the victim's rate after, another stream before and after."""
    found = []
    for n in range(20):
        later = n >= 10
        parts = [stream("s.1", rate if later else 44)]
        if other:
            parts.append(stream("t.9", other[later], targets=where))
        if others_elsewhere:
            parts += [stream(f"far.{i}", others_elsewhere[later], targets=ELSEWHERE) for i in range(3)]
        noisy = noise or not later
        found.append(window(n, *parts, *([small_files("m.2", 20, targets=FLASH if later else TARGETS)]
                                         if noisy else [])))
    return found


@pytest.mark.parametrize(("rate", "verdict"), [
    (66, "helped"), (55, "helped"), (45, "did-not-help"), (20, "did-not-help")])
def test_a_fair_part_of_the_loss_must_be_won_back(rate: float, verdict: str) -> None:
    assert judged(episode(rate)).verdict == verdict


def test_not_before_its_time() -> None:
    assert judged(episode(66), now=89.0).verdict == "too-early"


def test_when_the_noise_has_gone_nothing_is_proven() -> None:
    assert judged(episode(66, noise=False)).verdict == "cannot-tell"


def test_when_the_victim_has_gone_nothing_is_proven() -> None:
    gone = [window(n, small_files("m.2", 20)) for n in range(20)]
    assert judged(gone).verdict == "cannot-tell"


def test_the_part_won_back_is_reported() -> None:
    assert judged(episode(55)).won_back == pytest.approx(0.5)


def test_what_everybody_gained_was_not_the_act() -> None:
    """The whole file system got faster by a third, the victim with it: the act did nothing."""
    found = judged(episode(44 * 4 / 3, others_elsewhere=(30, 40)))
    assert (found.verdict, found.elsewhere) == ("did-not-help", pytest.approx(4 / 3))


def test_what_everybody_lost_is_not_held_against_the_act() -> None:
    assert judged(episode(45)).verdict == "did-not-help"
    assert judged(episode(45, others_elsewhere=(40, 30))).verdict == "helped"


def test_small_jobs_elsewhere_that_end_do_not_double_the_rate_of_the_victim() -> None:
    """As on a real file system: a few small jobs elsewhere went down, and 65.5 MB/s were shown as 131."""
    found = judged(episode(65.5, others_elsewhere=(0.2, 0.02)))
    assert (found.verdict, found.elsewhere, found.after) == ("helped", 1.0, pytest.approx(65.5e6))
    assert found.won_back == pytest.approx(21.5 / 22)
    uneven = [window(n, stream("s.1", 65.5 if n >= 10 else 44),
                     small_files("m.2", 20, targets=TARGETS if n < 10 else FLASH),
                     *[stream(f"far.{i}", 10 if n >= 10 else (30, 2)[n % 2], targets=ELSEWHERE) for i in range(3)])
              for n in range(20)]
    assert judged(uneven).elsewhere == 1.0


@pytest.mark.parametrize("factor", [0.3, 2.5])
def test_a_file_system_that_changed_as_a_whole_is_no_measure(factor: float) -> None:
    found = judged(episode(60, others_elsewhere=(20, 20 * factor)))
    assert (found.verdict, found.after) == ("cannot-tell", pytest.approx(60e6))


def test_a_corrected_rate_that_was_never_there_is_refused() -> None:
    found = judged(episode(66, others_elsewhere=(40, 24)))
    assert (found.verdict, found.after) == ("cannot-tell", pytest.approx(66e6))


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
    far = ("lustre-OST0042",)
    windows = []
    for n in range(20):
        unseen = 13 <= n < 16
        parts = [stream("s.1", 66 if n >= 10 else 44), small_files("m.2", 20, targets=TARGETS if n < 10 else FLASH)]
        if not unseen:
            parts.append([JobLoad(far[0], "s.1", write_bytes=1e9, writes=1000.0)])
        windows.append(window(n, *parts, conditions=dict.fromkeys(far, UNSEEN) if unseen else None))
    assert judged(windows).after == pytest.approx(66e6 + 1e9 / 5)


@pytest.mark.parametrize("where", [TARGETS, FLASH])
def test_others_on_these_disks_or_on_the_flash_must_not_pay(where: tuple[str, ...]) -> None:
    found = judged(episode(66, other=(20, 15), where=where), now=85.0)
    assert (found.verdict, set(found.harmed)) == ("harmed-others", {"t.9"})
    assert found.harmed["t.9"] == pytest.approx(0.25)
    assert judged(episode(66, other=(20, 19), where=where)).verdict == "helped"
    assert judged(episode(66, other=(20, 15), where=ELSEWHERE)).verdict == "helped"


def test_a_job_that_varies_by_itself_is_not_harmed() -> None:
    windows = episode(66)
    uneven = [window(n, stream("t.9", rate)) for n, rate in enumerate([30, 15, 22, 28] * 5)]
    both = [Window(w.start, w.end, {**w.loads, **u.loads}, w.namespace) for w, u in zip(windows, uneven, strict=True)]
    assert judged(both).verdict == "helped"


def test_metadata_of_others_must_not_pay() -> None:
    windows = [Window(w.start, w.end, w.loads, {**w.namespace, "db.5": small_files("db.5", 50 if n < 10 else 30)[1]})
               for n, w in enumerate(episode(66))]
    found = judged(windows)
    assert found.verdict == "harmed-others"
    assert found.harmed["db.5"] == pytest.approx(0.4)


def test_an_aggressor_whose_data_is_on_the_mdt_is_still_at_work() -> None:
    def silent(n: int) -> Window:
        _, names = small_files("m.2", 20)
        return Window(n * 5.0, n * 5.0 + 5, window(n, stream("s.1", 66)).loads, {"m.2": names})

    windows = [*episode(44)[:10], *(silent(n) for n in range(10, 20))]
    assert judged(windows).verdict == "cannot-tell"
    assert judge(Act(FINDING, BEGUN, BEGUN, FLASH, on_mdt=True), windows, 100.0, SETTINGS).verdict == "helped"


OWN = Finding("small-random-io", 0, "db.4", "", TARGETS, "", {})


def own_episode(before: float, after: float, other: tuple[float, float] | None = None,
                active: range = range(20)) -> list[Window]:
    return [window(n, *([stream("db.4", after if n >= 10 else before)] if n in active else []),
                   *([stream("t.9", other[n >= 10])] if other else []), stream("far.1", 5, targets=ELSEWHERE))
            for n in range(20)]


def own_judged(windows: list[Window], now: float = 100.0) -> Judgement:
    return judge_own(Act(OWN, BEGUN, BEGUN, FLASH), windows, now, SETTINGS)


@pytest.mark.parametrize(("before", "after", "verdict"), [
    (20, 40, "helped"), (20, 21.2, "helped"), (20, 20.5, "cannot-tell"), (20, 19, "cannot-tell"),
    (20, 17, "did-not-help"), (20, 1, "did-not-help")])
def test_a_job_is_judged_by_its_own_rate(before: float, after: float, verdict: str) -> None:
    found = own_judged(own_episode(before, after))
    assert found.verdict == verdict
    assert found.won_back == pytest.approx(after / before - 1)


def test_a_job_that_comes_back_is_waited_for() -> None:
    away = own_episode(20, 40, active=range(10))
    assert own_judged(away).verdict == "too-early"
    assert own_judged(away, now=BEGUN + SETTINGS.moving_seconds).verdict == "cannot-tell"
    assert own_judged(own_episode(20, 40, active=range(10, 20))).verdict == "cannot-tell", "nothing to compare with"


def test_a_job_that_paused_before_the_act_is_compared_with_its_last_run() -> None:
    paused = [w for w in own_episode(20, 40) if not 30 <= w.start < 50]
    assert own_judged(paused).verdict == "helped"


def test_others_must_not_pay_for_a_job_that_gains() -> None:
    found = own_judged(own_episode(20, 40, other=(20, 15)), now=85.0)
    assert (found.verdict, set(found.harmed)) == ("harmed-others", {"t.9"})


def test_an_act_for_a_job_is_not_judged_before_its_time() -> None:
    assert own_judged(own_episode(20, 1), now=75.0).verdict == "too-early"
