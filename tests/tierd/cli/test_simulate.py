"""``tierctl simulate`` and ``tierctl evaluate``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tierd.act.journal.entry import Entry
from tierd.cli.tierctl import main
from tierd.config.settings import Settings
from tierd.simulation.evaluate import Verdict, evaluate, summary, summary_json, summary_text
from tierd.simulation.random_scenarios import KINDS, random_scenario
from tierd.simulation.run import begun_at

ENTRY = Entry(1, "migrate", "/f", None, None, 1, "done", "", "", 0.0)


def test_the_paper_s_table_emerges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "p.svg"
    assert main(["simulate", "noisy-neighbour", "--json", "--plot", str(picture)]) == 0
    shown = json.loads(capsys.readouterr().out)["variants"]
    alone = shown["alone"]["streaming_mb_s"]
    assert shown["contended"]["streaming_mb_s"] <= 0.8 * alone
    assert shown["flash_covers"]["streaming_mb_s"] >= 0.97 * alone
    assert shown["flash_too_small"]["streaming_mb_s"] <= 0.85 * alone
    assert shown["tierd"]["streaming_mb_s"] >= 0.97 * alone
    assert shown["tierd"]["recovered_after_seconds"] <= 60
    assert [a["outcome"] for a in shown["tierd"]["actions"]] == ["done"]
    assert 30 < shown["tierd"]["actions"][0]["t"] <= shown["tierd"]["findings"][0]["t"] + 1
    assert shown["contended"]["slowdown"]["ior_stream.1002"] > 1.2
    assert shown["tierd"]["slowdown"]["ior_stream.1002"] < 1.03
    before, noisy = shown["contended"]["phases_mb_s"]["ior_stream.1002"]
    assert noisy < 0.8 * before
    assert 0 < shown["flash_covers"]["pools_used_share"]["flash"]["end"] < 1
    assert picture.read_text().count("<svg") == 1


def test_a_policy_for_other_pools_does_nothing_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[small_files_to_flash]\nflash_pool = 'nvme'\n")
    assert main(["simulate", "noisy-neighbour", "--policy", str(policy)]) == 0
    assert "not done: /proj/ingest: pool 'nvme' does not exist" in capsys.readouterr().out


def test_tables_for_people_name_jobs_phases_and_moves_and_disturb_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert "0-  4 s    4- 12 s" in shown
    assert "'a\\x1b[31m b\\n.5'" in shown
    assert "x 1." in shown


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
    (["simulate", "none"], "no scenario 'none': neither a file nor in the library: accelerator, bad-day"),
    (["simulate", "none.toml"], "none.toml: No such file or directory"),
    (["simulate", "noisy-neighbour", "--plot", "p.gif"], "p.gif: --plot writes .png or .svg"),
    (["simulate", "noisy-neighbour", "--plot", "/no/such/p.svg"], "/no/such/p.svg: cannot be written: No such file"),
    (["simulate", "noisy-neighbour", "--plot", "/proc/p.svg"], "/proc/p.svg: cannot be written"),
    (["evaluate", "--policy", "none.toml"], "none.toml: No such file or directory"),
])
def test_what_is_not_there_is_named(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    assert main(arguments) == 1
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.out == "", "reported before the run"


def test_a_scenario_is_the_same_each_time() -> None:
    assert random_scenario(5).jobs == random_scenario(5).jobs
    assert {random_scenario(seed).kind for seed in range(1, 60)} == {kind for kind, _ in KINDS}


def test_one_scenario_is_judged_by_three_runs() -> None:
    seed = next(s for s in range(1, 50) if random_scenario(s).kind == "small files on flash")
    verdict = evaluate(seed, Settings())
    assert (verdict.truth, verdict.acted, verdict.harm) == ("innocent", False, 0.0)


def test_figures_are_counted_as_said() -> None:
    verdicts = [
        Verdict(1, "a", "aggressor", 0.3, 20.0, True, 0.0, 0.98),
        Verdict(2, "a", "aggressor", 0.3, 40.0, True, 0.0, 0.9),
        Verdict(3, "a", "aggressor", 0.3, None, False, 0.0, 0.7),
        Verdict(4, "b", "innocent", 0.0, None, True, 0.03, None),
        Verdict(5, "b", "slight", 0.1, None, False, 0.0, None),
    ]
    assert summary(verdicts) == {
        "scenarios": 5, "with_aggressor": 3, "found": 2, "found_within_30s": 1, "found_within_60s": 2,
        "without_aggressor": 1,
        "acted_wrongly": 1, "harmed": 1, "worst_harm": 0.03, "median_recovery": 0.94}
    assert "look at seed 3: a, aggressor, loss 30%, not found" in summary_text(verdicts)
    assert json.loads(summary_json(verdicts)) == summary(verdicts) | {
        "seeds": {"not_found": [3], "found_late": [2], "acted_wrongly": [4], "harmed": [4]}}
