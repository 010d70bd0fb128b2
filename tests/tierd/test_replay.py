"""Replays of the tapes: recordings of a real file system, each with a note of what really happened."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.tierd.tapes import NAMES, TAPES, tape_of, truth
from tierd.__main__ import main
from tierd.config.settings import Settings
from tierd.engine import Engine
from tierd.model import Facts, Finding, SlowdownEvidence
from tierd.policies.noisy_neighbour import NoisyNeighbourEvidence
from tierd.replay.run import Report, as_json, as_text, replay
from tierd.sense import parameters
from tierd.sense import tape as tapes
from tierd.sense.readings import window
from tierd.text import Carrier

read_once = cache(parameters.reading)
"""Readings of the tapes. Parsing them again takes half of the time of a replay."""


@cache
def report(name: str) -> Report:
    return replay(tape_of(name), Settings(), read_once)


@pytest.mark.parametrize("name", NAMES)
def test_finds_what_the_tape_says_and_nothing_else(name: str) -> None:
    expect = truth(name)["expect"]
    found = [f for f in report(name).findings if f.kind == "noisy-neighbour"]
    assert {f.aggressor for f in found} == set(expect["aggressors"])
    assert {f.victim for f in found} == set(expect["victims"])
    assert {t for f in found for t in f.targets} == set(expect["targets"])
    assert {d for f in found for d in f.directories} == set(expect["directories"])
    assert not name.startswith("control") or report(name).plan == ()


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("noisy")])
def test_finds_it_within_twelve_seconds_of_the_onset(name: str) -> None:
    onset = next(p["start"] for p in truth(name)["phases"] if p["name"] == "contended")
    assert all(onset < f.time <= onset + 12 for f in report(name).findings)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("noisy")])
def test_the_flash_component_holds_the_whole_file(name: str) -> None:
    expect = truth(name)["expect"]
    defaults = [a for a in report(name).plan if a.kind == "set-default-layout"]
    least = expect.get("min_flash_component_bytes")
    if least is None:
        assert defaults == []  # one large file: no first component helps it
    else:
        assert {a.directory for a in defaults} == set(expect["directories"])
        assert all(a.layout.components[0].pool == "flash" for a in defaults)
        assert all(least <= (a.layout.components[0].extent_end or 0) <= 8 * least for a in defaults)
        assert all(a.layout.components[-1].pool == "hdd" for a in defaults)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("noisy")])
def test_the_loss_after_half_a_minute_is_what_the_application_measured(name: str) -> None:
    measured = truth(name)["phase_mean_mb_s"]
    onset = next(p["start"] for p in truth(name)["phases"] if p["name"] == "contended")
    tape = tape_of(name)
    kept = [n for n, time in enumerate(tape.times) if time <= onset + 31]
    cut = replace(tape, times=tuple(tape.times[n] for n in kept), trees=tuple(tape.trees[n] for n in kept))
    (found,) = [f for f in last_findings(cut) if f.kind == "noisy-neighbour"]
    evidence = found.evidence
    assert isinstance(evidence, SlowdownEvidence)
    assert evidence.loss_low <= 1 - measured["contended"] / measured["alone"] <= evidence.loss_high
    assert evidence.loss_high - evidence.loss_low <= 0.3
    assert evidence.carrier is Carrier.ARRIVAL
    assert evidence.aggressor_came_at == pytest.approx(onset, abs=6)
    assert evidence.victim_usual_bytes_per_second / 1e6 == pytest.approx(measured["alone"], rel=0.15)


def last_findings(tape: tapes.Tape) -> tuple[Finding, ...]:
    """Findings of the last window."""
    engine = Engine(Settings())
    readings = [read_once(tree, time) for tree, time in zip(tape.trees, tape.times, strict=True)]
    facts = Facts(pools=parameters.pool_capacity(tape.trees[0]).pools)
    found: tuple[Finding, ...] = ()
    for pair in pairwise(readings):
        found = engine.run_cycle(window(*pair), lambda *_: (), lambda: facts).findings
    return found


@pytest.mark.parametrize("thresholds", [
    pytest.param({"min_loss": 0.03, "probability": 0.7, "recent_seconds": 20}, id="found sooner"),
    pytest.param({"min_loss": 0.08, "probability": 0.9, "recent_seconds": 60}, id="found later"),
])
def test_no_verdict_hangs_on_the_thresholds(thresholds: dict[str, Any]) -> None:
    settings = replace(Settings(), noisy_neighbour=replace(Settings().noisy_neighbour, **thresholds))
    for name in NAMES:
        found = replay(tape_of(name), settings, read_once).findings
        assert {f.aggressor for f in found if not f.advice_only} == set(truth(name)["expect"]["aggressors"]), name


@pytest.mark.parametrize("every", [2, 3])
def test_slower_sampling_sees_the_same(every: int) -> None:
    for name in NAMES:
        tape = tape_of(name)
        thinned = replace(tape, times=tape.times[::every], trees=tape.trees[::every])
        found = replay(thinned, Settings(), read_once).findings
        assert {f.aggressor for f in found if not f.advice_only} == set(truth(name)["expect"]["aggressors"]), name


def test_json_has_the_promised_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(TAPES / "noisy-create-1m"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (finding,) = printed["findings"]
    assert {"kind", "since", "aggressor", "victim", "targets", "directories", "evidence"} <= finding.keys()
    (step,) = printed["plan"]
    assert {"action", "directory", "layout", "reason"} <= step.keys()
    assert step["layout"] == "-E 2M -c 1 -p flash -E -1 -c 1 -S 4M -p hdd"


def test_text_names_the_command_that_would_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(TAPES / "noisy-create-1m")]) == 0
    assert "lfs setstripe -E 2M -c 1 -p flash -E -1 -c 1 -S 4M -p hdd /proj/ingest" in capsys.readouterr().out


def test_pools_of_other_names_need_a_line_of_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "tierd.toml"
    config.write_text("[small_files_to_flash]\nflash_pool = 'nvme'\n")
    assert main(["replay", str(TAPES / "noisy-create-1m"), "--config", str(config)]) == 0
    printed = capsys.readouterr().out
    assert "Plan: no changes." in printed
    assert "Not done: /proj/ingest: pool 'nvme' does not exist or has no targets." in printed


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("tape.json", b"{", "not JSON"),
    ("tape.json", b"[]", "no list 'snapshot_times'"),
    ("tape.tar.xz", b"not an archive", "cannot be unpacked: file could not be opened successfully\n"),
])
def test_a_broken_tape_is_named_with_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str,
                                                   content: bytes, sentence: str) -> None:
    good = TAPES / "control-quiet"
    for file in ("tape.json", "tape.tar.xz"):
        (tmp_path / file).write_bytes((good / file).read_bytes())
    (tmp_path / name).write_bytes(content)
    assert main(["replay", str(tmp_path)]) == 1
    complaint = capsys.readouterr().err
    assert sentence in complaint
    assert name in complaint


def test_a_missing_tape_says_what_a_tape_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 1
    reported = capsys.readouterr().err
    assert "a tape is a folder with tape.json and tape.tar.xz" in reported
    assert reported.startswith(f"{tmp_path}/none: no such file or folder"), "and no other path is named"


@pytest.mark.parametrize(("name", "kinds"), [
    ("noisy-random-4k", ["small-random-io"]), ("noisy-flash-too-small", ["outgrown-component"]),
    ("control-flash-covers", []), ("control-quiet", [])])
def test_a_recording_has_these_further_findings(name: str, kinds: list[str]) -> None:
    found = report(name)
    assert [finding.kind for finding in found.advice] == kinds
    assert not {f.kind for f in found.findings} & set(kinds)
    reported = json.loads(as_json(found))
    assert [entry["kind"] for entry in reported["advice"]] == kinds
    assert as_text(found).count("Also found: ") == len(kinds)
    if name == "noisy-flash-too-small":
        (outgrown,) = found.advice
        assert outgrown.directories == ("/proj/ingest_pfl128k",)
        assert outgrown.evidence.numbers()["component_bytes"] == 128 << 10


def begun_after_the_onset(name: str, seconds: float) -> Report:
    """The recording as a tierd sees it that is started so long after the neighbour."""
    tape = tape_of(name)
    phase = next(p for p in truth(name)["phases"] if p["name"] == "contended")
    kept = [n for n, time in enumerate(tape.times) if phase["start"] + seconds <= time <= phase["end"]]
    return replay(replace(tape, times=tuple(tape.times[n] for n in kept), trees=tuple(tape.trees[n] for n in kept),
                          records=tuple(r for r in tape.records if r.time >= tape.times[kept[0]])), Settings(),
                  read_once)


def test_writes_that_never_vary_take_as_much_device_time_as_the_stream_lost_within_the_error() -> None:
    """Each 4 KiB write waits for a commit. Without the commits they took 16%."""
    measured = truth("noisy-random-4k")["phase_mean_mb_s"]
    (found,) = [f for f in begun_after_the_onset("noisy-random-4k", 1.0).findings if f.kind == "noisy-neighbour"]
    assert isinstance(found.evidence, NoisyNeighbourEvidence)
    share, error = found.evidence.device_time_share, found.evidence.device_time_share_error
    assert share is not None
    assert error is not None
    assert share > 0.25
    assert share == pytest.approx(1 - measured["contended"] / measured["alone"], abs=error)


@pytest.mark.parametrize("seconds", [1.0, 15.0])
@pytest.mark.parametrize("name", NAMES)
def test_finds_by_device_time_a_neighbour_that_was_there_before(name: str, seconds: float) -> None:
    expect = truth(name)["expect"]
    cut = begun_after_the_onset(name, seconds)
    found = [f for f in cut.findings if f.kind == "noisy-neighbour"]
    assert {f.aggressor for f in found} == set(expect["aggressors"])
    assert {f.victim for f in found} == set(expect["victims"])
    assert {t for f in found for t in f.targets} == set(expect["targets"])
    assert all(f.time <= cut.tape.times[0] + 16 for f in found), "after the three windows that show costs of service"
    if expect.get("min_flash_component_bytes"):  # a large file was opened before anybody listened
        assert {d for f in found for d in f.directories} == set(expect["directories"])
        assert {a.directory for a in cut.plan} == set(expect["directories"])
    else:
        assert cut.plan == ()
