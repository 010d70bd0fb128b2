"""The verdict on a rebalance: the fill, and the jobs beside it."""

from dataclasses import replace

import pytest

from tierd.acts import Verdict
from tierd.model import Facts, Finding, JobLoad, TargetFill, Window
from tierd.policies.imbalance import FillEvidence, judge
from tierd.policies.protocol import MoveRun
from tierd.verify.judgement import Settings

POOL = ("l-OST0002", "l-OST0003", "l-OST0004")
EVIDENCE = FillEvidence(used_share=0.7, others_used_share=0.2, pool_used_share=0.4)
FINDING = Finding("imbalance", 1000.0, "", "", POOL[1:2], "…", EVIDENCE, subject="fill of l-OST0003")
RUN = MoveRun(1000.0, 1000.0, 1600.0, False, lambda: (12, 3_000_000_000), Facts(), (), 1700.0, Settings())
UNCHANGED = "stopped: the fill hardly changed; the files stay, and tierd tries again in 6 h. "


def filled(used: float, others: float) -> Facts:
    """The last target is drained."""
    fill = {target: TargetFill(100, round(100 * (1 - share)))
            for target, share in zip(POOL, (others, used, 0.0), strict=True)}
    return Facts(pools={"hdd": POOL}, fill=fill, closed={POOL[2]: "is being drained"})


@pytest.mark.parametrize(("fill", "verdict", "words"), [
    ((0.45, 0.4), Verdict.HELPED, (
        "it helped, and no steady job lost more than 10%. l-OST0003 was 70% full and the others 20%, now 45% and 40%; "
        "12 files with 3.0 GB moved in 10 min")),
    ((0.7, 0.2), Verdict.DID_NOT_HELP, UNCHANGED), ((0.9, 0.45), Verdict.DID_NOT_HELP, UNCHANGED)])
def test_the_verdict_is_by_the_difference_of_the_fill(fill: tuple[float, float], verdict: Verdict, words: str) -> None:
    found = judge(FINDING, EVIDENCE, replace(RUN, facts=filled(*fill)))
    assert found is not None
    assert found.verdict == verdict
    assert found.words.startswith(words)
    assert judge(FINDING, EVIDENCE, RUN) is None, "the fill is unknown"


def windows(before: float, later: float, elsewhere: float = 1.0) -> list[Window]:
    """Five-second windows around the time 1000, of a stream on the pool and four elsewhere."""
    found = []
    for start in range(900, 1100, 5):
        rate, factor = (before, 1.0) if start < 1000 else (later, elsewhere)
        loads = {(POOL[0], "ior.1"): JobLoad(POOL[0], "ior.1", 0.0, 5e6 * rate, 0.0, 5 * rate)}
        for number in range(4):
            loads["l-OST0009", f"far.{number}"] = JobLoad("l-OST0009", f"far.{number}", 0.0, 5e7 * factor, 0.0, 50.0)
        found.append(Window(float(start), start + 5.0, loads, {}))
    return found


@pytest.mark.parametrize(("later", "elsewhere", "now", "slowed"), [
    (30.0, 1.0, 1095.0, True), (39.0, 1.0, 1095.0, False), (30.0, 0.75, 1095.0, False),
    (20.0, 1.0, 1700.0, False), (20.0, 1.0, 1020.0, False)],  # long after the moves began, a loss may have any cause
)
def test_a_job_on_the_pool_that_gets_slower_when_moves_begin_is_slowed_by_them(
        later: float, elsewhere: float, now: float, slowed: bool) -> None:
    found = judge(FINDING, EVIDENCE, replace(
        RUN, facts=filled(0.45, 0.4), windows=windows(40.0, later, elsewhere), now=now, moving=True))
    if not slowed:
        assert found is None
        return
    assert found is not None
    assert (found.verdict, list(found.harmed)) == (Verdict.HARMED_OTHERS, ["ior.1"])
    assert found.words.startswith("stopped: jobs got slower while files moved: ior.1 lost 25%; the files stay")
