"""What tierd would have done in a recorded past, and what it then brings."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from stack.services import free_ports
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.whatif.past import RAN, SECONDS, Past, Samples, keeping, kept
from tests.tierd.whatif.past import past as past
from tierd.cli.tierctl import main
from tierd.config.settings import Settings
from tierd.detect.account import BilledWindow, Case, Lost
from tierd.refusal import Reason
from tierd.simulation.run import run
from tierd.whatif.account import PARTS, Account, Made, Neighbour, given_back, living, needs
from tierd.whatif.command import asked
from tierd.whatif.report import WHY, Answer, as_text, not_known


def answer(past: Past, samples: Samples | None = None, step_seconds: float | None = None,
           settings: Settings | None = None, interrupted_after: int = 10**9) -> Answer:
    api = keeping(past.samples if samples is None else samples, interrupted_after=interrupted_after)
    return asked(api, settings or Settings(), past.begin, past.end, step_seconds, (1e8, 1e9))


def without(past: Past, **labels: str) -> Samples:
    return {names: points for names, points in past.samples.items()
            if not all(dict(names).get(name, "").startswith(value) for name, value in labels.items())}


def test_what_it_predicts_is_what_tierd_brings(past: Past) -> None:
    outcome = run(FluidCluster(recorded_test_bed(), RAN), RAN, SECONDS, policy=Settings())
    brought = sum(outcome.rates[STREAM.job_id]) * 1e6 - past.streamed_bytes
    found = answer(past)
    (case,) = found.cases
    assert (case.kind, case.aggressor, case.victim, case.refused) == (
        "noisy-neighbour", NOISE.job_id, STREAM.job_id, "")
    assert case.begin - past.begin == pytest.approx(120, abs=20)
    gain = found.needed[-1].gain
    assert gain.bytes == pytest.approx(brought, rel=0.2)
    assert gain.low_bytes < brought < gain.high_bytes
    assert [(finding.aggressor, finding.victim) for _, finding in outcome.findings] == [(case.aggressor, case.victim)]
    flash = recorded_test_bed().osts[0].device.size_bytes * 2
    used = outcome.pools_used["flash"]
    assert found.needed[-1].low_bytes == pytest.approx((max(used) - used[0]) * flash, rel=0.25)


def test_long_windows_find_it_too(past: Past) -> None:
    found = answer(past, step_seconds=60.0)
    assert [case.aggressor for case in found.all_cases] == [NOISE.job_id]
    assert "cases shorter than 2 min: a window is 60 s long" in not_known(found)


def test_mode_and_policies_are_those_of_the_settings(past: Past) -> None:
    settings = Settings()
    reports = replace(settings, act=replace(settings.act, on=()))
    found = answer(past, settings=reports)
    assert [case.refused for case in found.cases] == ["reported-only"]
    assert found.needed[-1].gain.bytes == 0
    assert f"in 1 case tierd would have done nothing: {WHY[Reason.REPORTED_ONLY]}" in as_text(found)


@pytest.mark.parametrize(("labels", "words"), [
    ({"target": "MDT"}, "no MDT has counters"),
    ({"__name__": "lustre_job", "target": "OST0003"}, "1 OST without counters (lustre-OST0003)"),
    ({"jobid": STREAM.job_id}, "pools that no stream keeps busy: hdd"),
])
def test_what_is_not_known_is_said(past: Past, labels: dict[str, str], words: str) -> None:
    assert words in "\n".join(not_known(answer(past, without(past, **labels))))


def test_a_separate_scrape_of_jobs_changes_nothing(past: Past) -> None:
    samples = {tuple((name, "lustre-jobs" if (name, dict(names)["__name__"][:10]) == ("job", "lustre_job") else value)
                     for name, value in names): points for names, points in past.samples.items()}
    assert samples != past.samples
    assert as_text(answer(past, samples)) == as_text(answer(past))


def test_a_loss_is_certain_where_the_bill_has_it() -> None:
    account, window = Account(Settings(), 15.0, 0.0, 600.0), BilledWindow(1e9, 15.0, 0.5, 0.0)
    account._all = {("noisy-neighbour", "a.1", f"v.{noticed}"): Case(
        0, 0.0, 15.0, is_noticed=bool(noticed), cost=1.0, windows=[window]) for noticed in (0, 1)}
    account.close()
    assert [case.lost.is_certain for case in account.cases] == [False, True]


def test_a_gap_makes_no_more_files_a_day(past: Past) -> None:
    gap = {names: [(at, value) for at, value in points if not 300 < at - past.begin < 500]
           for names, points in past.samples.items()}
    whole, gapped = (as_text(answer(past, samples))[3] for samples in (past.samples, gap))
    assert gapped == whole


def test_without_pools_the_disks_are_one(past: Past) -> None:
    found = answer(past, without(past, __name__="lustre_pool_target_info"))
    assert [case.aggressor for case in found.cases] == [NOISE.job_id]
    assert "all OSTs that rotate count as one pool" in "\n".join(not_known(found))


def test_after_ctrl_c_it_shows_what_is_complete(past: Past) -> None:
    found = answer(past, interrupted_after=5)
    assert isinstance(found.stopped, KeyboardInterrupt)
    assert past.begin < found.until < past.end - 60
    assert any("reading was stopped" in each for each in not_known(found))


def test_the_command_asks_a_real_prometheus(past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = [datetime.fromtimestamp(each, UTC).isoformat()[:19] for each in (past.begin - 60, past.end + 60)]
    with kept(past.file, tmp_path) as url:
        command = ["--utc", "whatif", "--prometheus", url, "--since", times[0], "--until", times[1]]
        assert main([*command, "--flash", "100G,1T", "--picture", str(tmp_path / "curve.svg")]) == 0
        text = capsys.readouterr().out
        assert main([*command, "--json", "--fs", "lustre"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert main([*command, "--fs", "other"]) == 1
        assert 'lustre_jobs_read_timestamp_seconds{fs="other"}' in capsys.readouterr().err
    same = answer(past)
    assert told["cases"][0]["lost"]["bytes"] == pytest.approx(same.cases[0].lost.bytes)
    assert told["complete"]
    assert [each["job"] for each in told["jobs"]] == [NOISE.job_id]
    assert text.splitlines()[0].startswith("lustre, 2026-11-18 11:0")
    assert "placed new files of 1 job on flash" in text
    assert [line.split()[:2] for line in text.splitlines() if line.endswith(" min") or " GB (" in line]
    assert ElementTree.parse(tmp_path / "curve.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "name the server: --prometheus http://prometheus:9090"),
    (("--prometheus", "http://p:9090", "--picture", "/nowhere/curve.svg"), "/nowhere/curve.svg: No such file"),
    (("--prometheus", "http://me:secret@prometheus:9090"), "others can see a password in an address"),
    (("--prometheus", "http://p:9090", "--since", "2026-11-20", "--until", "2026-11-19"),
     "--since 2026-11-20 is not before"),
    (("--config", "/nowhere/tierd.toml"), "/nowhere/tierd.toml: No such file"),
])
def test_every_unsupported_feature_names_a_remedy(arguments: tuple[str, ...], words: str,
                                      capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_prometheus_that_is_away_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_ports(0)[0]}"
    assert main(["whatif", "--prometheus", url]) == 1
    assert f"{url}/api/v1/query_range: " in capsys.readouterr().err


def test_a_size_of_flash_needs_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["whatif", "--flash", "50,100T"])
    assert "'50' is not a size: 500G, 50T, 1.5P" in capsys.readouterr().err


def neighbour(job: str, gain: float, peaks: dict[int, float], error: float = 0.1) -> Neighbour:
    return Neighbour(job, 0.0, 1 << 20, Made(), False, peaks=peaks,
                     gain=Lost(gain, gain * (1 - error), gain * (1 + error), 1.0))


NEIGHBOURS = st.lists(st.builds(
    neighbour, st.text(max_size=3), st.floats(1.0, 1e15),
    st.dictionaries(st.integers(0, PARTS), st.integers(0, 10**15).map(float), max_size=5), st.floats(0.0, 1.0)),
    max_size=6)


@given(NEIGHBOURS, st.floats(0.0, 0.9))
def test_more_flash_never_gives_back_less(neighbours: list[Neighbour], reserve: float) -> None:
    needed = needs(neighbours, reserve)
    sizes = [needed[-1].high_bytes * part / 8 for part in range(10)]
    for less, more in pairwise([given_back(needed, size) for size in sizes]):
        for column in ("bytes", "low_bytes", "high_bytes", "seconds"):
            assert getattr(less, column) <= getattr(more, column) * (1 + 1e-9)
        assert more.low_bytes <= more.bytes * (1 + 1e-9)
        assert more.bytes <= more.high_bytes * (1 + 1e-9)


def test_files_live_until_the_job_ends_or_for_ever() -> None:
    one = neighbour("j", 1.0, {2: 5.0, 4: 3.0})
    assert living(one, False)[:7].tolist() == [0, 0, 5, 5, 3, 0, 0]
    assert living(one, True)[[0, 3, 5, PARTS]].tolist() == [0, 5, 3, 3]


def test_jobs_at_different_times_share_flash_if_files_go() -> None:
    small, large = neighbour("a", 10.0, {1: 90.0}), neighbour("b", 10.0, {9: 180.0})
    nothing, first, both = needs([large, small], 0.1)
    assert (nothing.low_bytes, nothing.gain.bytes) == (0, 0)
    assert (first.low_bytes, first.high_bytes) == pytest.approx((100, 100))
    assert (both.low_bytes, both.high_bytes, both.gain.bytes) == pytest.approx((200, 300, 20))


def test_files_on_flash_are_those_made_since_and_not_removed() -> None:
    one = Neighbour("j", 0.0, 1 << 20, Made(300, 0, 300e6), False, made=Made(500, 400, 400e6))
    assert (one.files, one.mean_bytes) == (400, 0.8e6)
    one.moves = True
    assert one.files == 400
    one.made.unlinks = 0
    assert one.files == 800
    one.component_bytes = 65536
    assert one.mean_bytes == 65536
