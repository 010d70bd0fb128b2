"""``tierctl simulate`` and ``tierctl evaluate``."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cluster import Cluster
from simulator.jobs.large_files import StreamingReader, StreamingWriter
from simulator.jobs.small_files import SmallFileWriter
from simulator.settings import recorded_test_bed
from tierd import acts
from tierd.act.journal.entry import Entry
from tierd.acts import ActKind
from tierd.cli import simulate
from tierd.cli.tierctl import main
from tierd.config.load import parse
from tierd.config.settings import Settings
from tierd.simulation.evaluate import (
    Evaluated,
    Trial,
    Verdict,
    compared,
    goal_met,
    ratio,
    summary,
    summary_json,
    summary_text,
)
from tierd.simulation.random_scenarios import HARD, PLACEMENT, USUAL, Goal, RandomScenario, random_scenario
from tierd.simulation.run import Outcome, begun_at, run

ENTRY = Entry(1, ActKind.MIGRATE, "/f", None, None, 1, acts.Outcome.DONE, "", "", 0.0)


def of_flows(folder: Path, text: str = "") -> str:
    """A file with the scenario of the noisy neighbour as flows, which takes a third of the time."""
    file = folder / "s.toml"
    file.write_text(f"extends = 'noisy-neighbour'\nmodel = 'flows'\n{text}")
    return str(file)


def test_the_paper_s_table_emerges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "p.svg"
    assert main(["simulate", of_flows(tmp_path), "--json", "--plot", str(picture)]) == 0
    shown = json.loads(capsys.readouterr().out)["variants"]
    alone = shown["alone"]["streaming_mb_s"]
    assert shown["contended"]["streaming_mb_s"] <= 0.8 * alone
    assert shown["flash_covers"]["streaming_mb_s"] >= 0.97 * alone
    assert shown["flash_too_small"]["streaming_mb_s"] <= 0.85 * alone
    assert shown["tierd"]["streaming_mb_s"] >= 0.97 * alone
    assert shown["tierd"]["recovered_after_seconds"] <= 60
    assert [a["outcome"] for a in shown["tierd"]["actions"]] == ["done"]
    assert 30 < shown["tierd"]["actions"][0]["t"] <= shown["tierd"]["findings"][0]["t"] + 6, "in the next cycle"
    assert shown["contended"]["slowdown"]["ior_stream.1002"] > 1.2
    assert shown["tierd"]["slowdown"]["ior_stream.1002"] < 1.03
    assert 0 < shown["flash_covers"]["pools_used_share"]["flash"]["end"] < 1
    assert picture.read_text().count("<svg") == 1


def test_a_policy_for_other_pools_does_nothing_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[small_files_to_flash]\nflash_pool = 'nvme'\n")
    assert main(["simulate", of_flows(tmp_path, "seconds = 75\n[variant.contended]\n"), "--policy", str(policy)]) == 0
    assert "not done: /proj/ingest: pool 'nvme' does not exist" in capsys.readouterr().out


def test_tables_for_people_name_jobs_and_moves_and_disturb_no_terminal(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.toml"
    file.write_text("""
title = "x\\u001b[31m"
seconds = 12
[[job]]
kind = "streaming_write"
[[job]]
kind = "small_files"
job_id = "a\\u001b[31m b\\n.5"
directory = "/p/\\u001b[2Jx"
start_seconds = 4
""")
    assert main(["simulate", str(file)]) == 0
    shown = capsys.readouterr().out
    assert shown.replace("\n", "").isprintable()
    assert "'a\\x1b[31m b\\n.5'" in shown
    assert "x 1." in shown


def test_tierd_starts_at_the_given_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", of_flows(tmp_path, "seconds = 120\n[variant.contended]\n"), "--tierd-starts", "35"]) == 0
    shown = capsys.readouterr().out
    acts = shown.partition("What tierd did from 35 s on:\n")[2]
    times = [float(line.split()[0]) for line in acts.splitlines() if line.startswith("   ") and " s  " in line]
    assert times
    assert min(times) > 35
    assert "compared with its earlier throughput; mdt_small.1001 accesses" in acts


def test_metadata_jobs_are_reported_in_operations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "data-on-mdt", "--no-policy"]) == 0
    shown = capsys.readouterr().out
    assert "create" in shown
    assert "What tierd did" not in shown


def test_times_of_acts_survive_a_clock_that_jumps() -> None:
    clocks = [(0.0, 1000.0), (50.0, 4600.0)]
    entries = [replace(ENTRY, intended_at=1040.0), replace(ENTRY, intended_at=4660.0)]
    assert [begun_at(entry, clocks) for entry in entries] == [40.0, 60.0]


@pytest.mark.parametrize(("arguments", "sentence"), [
    (["simulate", "none"], "no scenario 'none': neither a file nor in the library: accelerator, accelerator-mixes, "),
    (["simulate", "none.toml"], "none.toml: No such file or directory"),
    (["simulate", "noisy-neighbour", "--plot", "p.gif"], "p.gif: --plot writes .png or .svg"),
    (["evaluate", "--policy", "none.toml"], "none.toml: No such file or directory"),
])
def test_missing_files_and_scenarios_are_named(capsys: pytest.CaptureFixture[str], arguments: list[str],
                                               sentence: str) -> None:
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.out == "", "reported before the run"


def test_a_scenario_is_the_same_each_time() -> None:
    assert random_scenario(5).jobs == random_scenario(5).jobs
    assert {random_scenario(seed).kind for seed in range(1, 150)} == USUAL | HARD


def test_one_seed_in_ten_is_hard_and_the_others_are_as_without_hard_ones() -> None:
    cases = [(random_scenario(seed), random_scenario(seed, USUAL)) for seed in range(1, 1001)]
    assert sum(case.kind in HARD for case, _ in cases) == pytest.approx(100, abs=30)
    assert all(case.jobs == usual.jobs for case, usual in cases if case.kind in USUAL)
    assert {usual.kind for _, usual in cases} == USUAL


@pytest.mark.parametrize("kind", sorted(USUAL | HARD))
def test_a_workload_is_drawn_alone(kind: str) -> None:
    cases = [random_scenario(seed, {kind}) for seed in range(1, 9)]
    assert {case.kind for case in cases} == {kind}
    assert len({case.jobs for case in cases}) >= len(cases) - 1


@pytest.mark.parametrize("seed", range(1, 13))
def test_tasks_of_an_array_are_one_name_beside_their_own(seed: int) -> None:
    case = random_scenario(seed, {"tasks of an array"})
    assert len(case.suspects) == 50
    assert len(case.names - set(case.suspects)) == 1


def test_jobs_run_the_same_beside_a_tierd_that_does_not_act() -> None:
    """Evaluation relies on this: it reuses the run with an idle tierd as the run without tierd."""
    seed = 1
    case = random_scenario(seed, {"another stream and few small files"})
    without, with_tierd = (run(Cluster(recorded_test_bed(seed), case.jobs), case.jobs, 120.0, case.changes, policy)
                           for policy in (None, Settings()))
    assert not with_tierd.entries
    assert with_tierd.rates == without.rates


def test_figures_are_counted_as_said() -> None:
    verdicts = [
        Verdict(1, "small files", "aggressor", 0.3, 20.0, True, 0.0, 0.98, acted_after=25.0, layout_helps=True,
                interval_holds=True),
        Verdict(2, "small files", "aggressor", 0.3, 40.0, True, 0.0, 0.9, acted_after=70.0, layout_helps=True,
                interval_holds=False),
        Verdict(3, "bursts of small files", "aggressor", 0.3, None, False, 0.0, 0.7),
        Verdict(4, "no neighbour", "innocent", 0.0, None, True, 0.03, None),
        Verdict(5, "no neighbour", "slight", 0.1, None, False, 0.0, None),
        Verdict(6, "few small files", "shifted", 0.2, None, False, 0.0, None),
    ]
    evaluated = Evaluated("1-6", True, verdicts)
    assert summary(verdicts) == {
        "scenarios": 6, "with_aggressor": 3, "found": 2, "found_within_30s": 1, "found_within_60s": 2,
        "median_found_after_seconds": 30.0, "without_aggressor": 1,
        "acted_wrongly": 1, "shifted": 1, "harmed": 1, "worst_harm": 0.03, "median_recovery": 0.94, "served": 0,
        "median_gain": 0.0, "with_goal": 0, "goals_met": 0, "goals_under_way": 0, "acted_on_within_60s": 1,
        "layout_helps": 2, "intervals": 2, "intervals_that_hold": 1}
    shown = json.loads(summary_json(evaluated))
    assert shown.items() >= (summary(verdicts) | {
        "evaluated_seeds": "1-6", "cold": True,
        "seeds": {"not_found": [3], "found_late": [2], "acted_wrongly": [4], "harmed": [4],
                  "shifted": [6], "goal_missed": []}}).items()
    assert shown["groups"] == {"usual": summary([v for v in verdicts if v.seed != 3]), "hard": summary(verdicts[2:3])}
    assert shown["workloads"]["no neighbour"] == summary(verdicts[3:5])
    assert "look at seed 3 on recorded: bursts of small files, aggressor, loss 30%, not" in summary_text(evaluated)
    assert "look at seed 6 on recorded: few small files, shifted, loss 20%, not found" in summary_text(evaluated)
    assert "seeds 1-6; tierd starts 5 s after the neighbour" in summary_text(evaluated)


def test_acts_for_a_job_itself_blame_nobody() -> None:
    verdicts = [Verdict(1, "random io in runs", "served", 0.0, None, False, 0.0, None, True, 3.0),
                Verdict(2, "random io in runs", "served", 0.0, None, False, 0.01, None, True, 1.0),
                Verdict(3, "random io in runs", "served", 0.0, None, False, 0.0, None, False, 0.0)]
    found = summary(verdicts)
    assert (found["served"], found["median_gain"], found["acted_wrongly"], found["without_aggressor"]) == (2, 2.0, 0, 0)


@pytest.mark.parametrize(("waiting", "rate", "acted", "met", "under_way"), [
    (5, 20.0, True, None, True), (0, 20.0, True, False, False), (5, 19.0, True, False, False),
    (0, 20.0, False, None, False)])
def test_a_goal_is_on_the_way_while_moves_wait_and_nobody_is_harmed(
        waiting: int, rate: float, acted: bool, met: bool | None, under_way: bool) -> None:
    case = RandomScenario("uneven pool", (StreamingWriter(job_id="writer"),), (), 20.0, (), goal=Goal.EVEN_POOL)
    entry = Entry(1, ActKind.MIGRATE, "/old", None, None, 1, acts.Outcome.DONE, "", "", 0.0)
    uneven = {"targets_used": {"a": 0.3, "b": 0.3, "c": 0.9}, "pools": {"hdd": ("a", "b", "c")}}
    without = Outcome(200.0, {"writer": (20.0,) * 200}, (), (), ())
    with_tierd = Outcome(200.0, {"writer": (rate,) * 200}, (), (entry,) * acted, (), kinds=("imbalance",) * acted,
                         acted_at=(50.0,) * acted, waiting_moves=waiting, **uneven)  # type: ignore[arg-type]
    verdict = compared(1, case, with_tierd, without, without, 0.0)
    assert (verdict.truth, verdict.served) == ("served", acted)
    assert (verdict.goal_met, verdict.under_way) == (met, under_way)


def outcome(rates: Sequence[float] = (), operations: Sequence[int] = (), used: Sequence[float] = ()) -> Outcome:
    """The end of a run of one job on the OSTs of one pool."""
    targets = dict(zip("abcdef", used, strict=False))
    return Outcome(len(rates or operations), {"job": tuple(rates)}, (), (), (), targets_used=targets,
                   operations_in={"job": tuple(operations)}, pools={"hdd": tuple(targets)})


def test_a_pool_is_even_if_no_target_differs_much() -> None:
    assert goal_met(Goal.EVEN_POOL, outcome(used=(0.3, 0.4, 0.35, 0.41)), None)
    assert not goal_met(Goal.EVEN_POOL, outcome(used=(0.3, 0.3, 0.3, 0.6)), None)
    assert not goal_met(Goal.EVEN_POOL, outcome(used=(0.6, 0.6, 0.1, 0.6)), None), "an empty one is uneven, too"


@pytest.mark.parametrize(("beside", "truth"), [
    ((16.0, 50.0), "shifted"),  # the reader has what the writer lost
    ((16.0, 49.1), "shifted"),
    ((16.0, 48.9), "aggressor"),  # the neighbour has 5% of the writer's rate
    ((16.0, 46.0), "aggressor"),
    ((16.0, 40.0), "aggressor"),
    ((19.5, 46.0), "innocent"),
    ((18.0, 46.0), "slight"),
])
def test_a_neighbour_is_no_aggressor_if_another_stream_has_the_loss(beside: tuple[float, float], truth: str) -> None:
    jobs = (StreamingWriter(job_id="writer"), StreamingReader(job_id="reader"),
            SmallFileWriter(job_id="trickle", start_seconds=50.0))
    case = RandomScenario("few small files", jobs, ("trickle",), 50.0, ())
    without, alone = (Outcome(200.0, {"writer": (writer,) * 200, "reader": (reader,) * 200}, (), (), ())
                      for writer, reader in (beside, (20.0, 46.0)))
    assert compared(1, case, without, without, alone, 0.0).truth == truth


def test_jobs_without_bytes_are_compared_by_their_operations() -> None:
    fast, slow = outcome(operations=(30, 30, 0, 60)), outcome(operations=(20, 20, 20, 0))
    assert ratio(fast, slow, ["job"], 0, 4) == 2.0
    assert ratio(outcome((1.0, 3.0), (9, 9)), outcome((2.0, 2.0), (1, 1)), ["job"], 0, 2) == 1.0


def test_an_uneven_pool_becomes_even_and_costs_a_small_job_nothing() -> None:
    policy = parse(b"[act]\non = ['imbalance']\n[rebalance]\nscan_files_per_second = 10\n", "t.toml")
    trial = Trial(1, {"uneven pool"})
    trial.case = replace(trial.case, seconds=250.0)  # it is even after 150 s
    verdict = trial.verdict(policy)
    assert (verdict.truth, verdict.served, verdict.acted, verdict.goal_met) == ("served", True, False, True)
    assert verdict.harm <= 0.02


@pytest.mark.parametrize("kind", sorted(PLACEMENT))
def test_placement_workloads_are_drawn_when_named(kind: str) -> None:
    drawn = {random_scenario(seed, PLACEMENT).kind for seed in range(60)}
    assert kind in drawn
    case = random_scenario(7, {kind})
    assert (case.kind, case.suspects) == (kind, ())
    assert set(case.served) <= {job.job_id for job in case.jobs}
    assert case == random_scenario(7, {kind})
    assert random_scenario(7, USUAL).kind in USUAL


def test_an_interrupted_evaluation_prints_what_is_complete(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def interrupted_at_the_second(_title: str, _total: float) -> Iterator[Callable[[float], None]]:
        def progress(done: float) -> None:
            if done == 2:
                raise KeyboardInterrupt
        yield progress

    monkeypatch.setattr(simulate, "bar", interrupted_at_the_second)
    arguments = ["evaluate", "--seeds", "4-6", "--processes", "1", "--workload", "no neighbour", "--json"]
    assert main(arguments) == 130
    printed = capsys.readouterr()
    shown = json.loads(printed.out)
    assert (shown["evaluated_seeds"], shown["scenarios"]) == ("4-5", 2)
    assert printed.err == "2 of 3 scenarios are complete\ninterrupted\n"


@pytest.mark.parametrize(("arguments", "says"), [
    (["evaluate", "--workload", "noise"], "no workload 'noise'; known: all, usual, hard, placement, another stream"),
    (["evaluate", "--processes", "0"], "'0' is not a whole number of at least 1"),
    (["simulate", "noisy-neighbour", "--tierd-starts", "nan"], "'nan' is not a number of seconds from 0 to a year"),
    (["top", "--interval", "-1"], "'-1' is not a number of seconds from 0 to a year"),
])
def test_wrong_options_are_named(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
