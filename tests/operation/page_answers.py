"""Answers from which the page is made, in tests without a daemon: a case with hostile names, refusals, moves."""

from typing import Any

from tierd.daemon import answers
from tierd.structs import Advice, MessageRow, SameFindingRow

NOW = 1_795_000_000.0
STREAM = "s.1"
EVIL = "<script>alert(1)</script>.2"
DIRECTORY = "/proj/<b>\n\udcff'\""
STATUS = answers.StatusAnswer(
    time=NOW, mode="full", scopes={}, dry_run=True, paused="", held="", draining="",
    faults={"changelog": "MDT0000: <gap> & loss"}, cases=(), advice=1, last_cycle=NOW - 2,
    windows=40, least_windows=4, looking_since=NOW - 200, history_seconds=1800.0,
    waiting_orders=0, waiting_moves=90, waiting_bytes=73_900_000, under_way_moves=2,
    waiting_defaults=1, waits_for="the limit of 4 files/s", moved_bytes=40_900_000,
    outcomes={"migrate done": 47, "migrate refused": 300, "set-default-layout done": 1},
    stalled=("no move has ended for 70 s",), device_time=(),
    sources=(answers.SourceAnswer("counters", 2.0, 30.0, False, "2 s old"),
             answers.SourceAnswer("changelog", None, 30.0, True, "no data yet")))
TIMES = answers.TargetTimeRow("lustre-OST0002", 0.98, (
    answers.JobTimeRow(STREAM, 0.7, 0.1), answers.JobTimeRow(EVIL, 0.2, 0.1)))
CASE = answers.Case(
    finding=1, kind="noisy-neighbour", sentence=f"s.1 streams at 44 MB/s instead of 65 MB/s since {EVIL} started",
    aggressor=EVIL, victim=STREAM, subject="", active=True, since=NOW - 60, onset=NOW - 90, ended_at=None,
    targets=tuple(f"lustre-OST{number:04x}" for number in range(8)), directories=(DIRECTORY,), state="judging",
    verdict="", judged=False, undo_reason="",
    why_not=(answers.RefusalAnswer("little-to-gain", "<b>s.1</b>: it would win too little", "lower benefit.min_gain"),),
    usual=65e6, contended=44e6, now=52e6, after=None, regained=None, measured_text="",
    acted_at=NOW - 50, judged_at=None,
    defaults=(answers.DefaultLayoutRow(1, DIRECTORY, "first 1M on flash"),), waiting_defaults=1, waiting_moves=90,
    moves={"done": 47}, loss_low=0.28, loss_high=0.37, dry_run=True, moves_held=True,
    curve=tuple((NOW - 300 + 5 * n, 65e6 if n < 42 else 44e6 + 1e5 * n) for n in range(60)),
    time_before=TIMES.replaced(target=""), time_now=TIMES.replaced(target="", utilisation=0.9))
KEPT = CASE.replaced(finding=2, active=False, state="closed", verdict="helped", judged=True, after=62e6,
                     regained=(0.86, 0.71, 1.02), judged_at=NOW - 10, why_not=(), moves_held=False, waiting_moves=0)
ADVICE = answers.Case(finding=3, kind="striping", since=NOW, aggressor="", victim="", targets=(), directories=(),
                      active=True, advice_only=True, subject="/proj", sentence="one stripe for a file of 2 TB",
                      advice=(Advice("lfs setstripe -c 4 /p", "anywhere", "x"),))
OVERVIEW = answers.OverviewAnswer.of(
    STATUS, fsname="lustre", mount="/mnt/lustre", version="1.0", options="", cases=(CASE, KEPT), all_cases=2,
    findings=(ADVICE,), seconds=5.0,
    targets=(answers.TargetRow(target="lustre-OST0002", read_bytes=0.0, write_bytes=15e6, operations=12.0, jobs=2,
                               slowdown=1.4, condition="degraded", pool="hdd", used=0.93, latency_usec=2100.0),),
    all_targets=392,
    times=(TIMES,),
    jobs=(answers.JobRow(job=STREAM, read_bytes=0.0, write_bytes=59e6, operations=46.0, creates=0.0, targets=4,
                         role="slowed"),
          answers.JobRow(job=EVIL, read_bytes=1e6, write_bytes=9e6, operations=40.0, creates=18.0, targets=4,
                         role="noise")),
    all_jobs=5000, users={STREAM: "alice (1)"},
    pools=(answers.PoolRow("flash", 2, 2 * 10**12, 10**12, 1.0, 2.0, 3.0, None),
           answers.PoolRow("hdd", 4, 8 * 10**12, 6 * 10**12, 1.0, 59e6, 3.0, 0.93)),
    reasons={"refused: has # hard links": 300})
ACT = answers.ActAnswer(1, NOW - 50, "set-default-layout", "/proj/a\nb", 0, "dry-run", "", None, "first 1M on flash",
                "new files of noise.2 then leave the disks of s.1")
HISTORY = answers.HistoryAnswer(entries=(ACT,), complete_since=NOW - 9000)
EXPLAIN = answers.ExplainAnswer(
    case=CASE.replaced(state="kept", verdict="helped", judged=True, after=62e6, regained=(0.86, 0.71, 1.02),
                       judged_at=NOW - 10, evidence={"slowdown": 1.4}),
    ordered=False, acts=(ACT,), all_acts=1, bytes_moved=0,
    outcomes={"set-default-layout dry-run": 1}, messages=(MessageRow(NOW - 60, f"FOUND {EVIL}"),),
    same=(SameFindingRow(0, NOW - 9000, 2),))
ABOUT = answers.AboutAnswer(
    name=EVIL, job=OVERVIEW.jobs[1], beside=(answers.RateRow("lustre-OST0002", 1e6, 9e6, 40.0, 0.0),
                                             answers.RateRow(DIRECTORY, 0.0, 0.0, 0.0, 0.0)), all_beside=70,
    cases=(CASE, KEPT), users={EVIL: "bob (2)", STREAM: "alice (1)"})
RATES = answers.RatesAnswer(
    since=NOW - 3600, until=NOW, step_seconds=60,
    points=tuple((NOW - 3540 + 60 * n, 2e6 * (n % 7), 44e6 + 4e5 * n, 50.0 + n, 20.0) for n in range(60)
                 if not 20 < n < 26))
LIST = answers.ListAnswer(
    targets=OVERVIEW.targets, jobs=OVERVIEW.jobs, found=2, users=OVERVIEW.users, device_time=(TIMES,))
ANSWERS: dict[str, dict[str, Any]] = {request: answers.to_json(answer) for request, answer in {
    "status": STATUS, "overview": OVERVIEW, "history": HISTORY,
    "explain": EXPLAIN, "about": ABOUT, "rates": RATES, "list": LIST}.items()}
"""By request."""


def overview(**changed: object) -> dict[str, object]:
    """The overview with other fields."""
    return answers.to_json(OVERVIEW.replaced(**changed))
