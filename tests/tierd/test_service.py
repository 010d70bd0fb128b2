"""The daemon with its socket and journal, over the simulated cluster; tierctl on the other side."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lustre.layout import same_shape
from simulator import faults
from tests.tierd.simulated import NOISE
from tests.tierd.site import Site, fetched, shown
from tests.tierd.site import site as site  # noqa: PLC0414 -- the fixture
from tierd.act.journal import Journal
from tierd.ctl import main
from tierd.metrics import collector
from tierd.service.ask import ControlError, ask
from tierd.service.control import ControlServer
from tierd.service.notify import Notifier


def test_an_administrator_sees_what_was_done_and_takes_it_back(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    before = site.filesystem.layout(NOISE.directory)
    assert before is not None
    assert "no findings" in shown(capsys, "status", site=site)
    site.run(until=55)
    status = shown(capsys, "status", site=site)
    assert "finding F1: ior_stream.1002 streams at" in status
    assert re.search(r"looking since .* UTC: a neighbour that was at work within the first 20 s of that is ", status)
    assert "case F1: mdt_small.1001 against ior_stream.1002 in /proj/ingest since" in status
    assert "slowdown: 1." in shown(capsys, "findings", site=site)
    history = shown(capsys, "history", site=site)
    assert " 1  20" in history
    assert "done     set-default-layout  /proj/ingest  first 1M on flash" in history
    assert "undone: set-default-layout of /proj/ingest: by " in shown(capsys, "undo", "1", site=site)
    present = site.filesystem.layout(NOISE.directory)
    assert present is not None
    assert same_shape(present, before)


def test_status_says_how_much_is_known_yet(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.run(until=20)
    learning = "learning what streams usually get, {} looks so far: a neighbour is found against 4 looks without it"
    assert learning.format(3) in shown(capsys, "status", site=site)
    site.run(until=50)
    assert "learning" not in shown(capsys, "status", site=site)
    faults.clock_jump(site.cluster, -7200.0)
    site.run(until=65)
    assert learning.format(1) in shown(capsys, "status", site=site)


def test_a_pause_is_kept_until_resume(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "pause", "maintenance", site=site).startswith("paused: maintenance\n")
    site.run(until=60)
    assert "PAUSED: maintenance" in shown(capsys, "status", site=site)
    assert shown(capsys, "history", site=site) == "nothing was done yet\n"
    shown(capsys, "resume", site=site)
    site.run(until=70)
    assert "set-default-layout" in shown(capsys, "history", site=site)


def test_observing_plans_nothing(site: Site) -> None:
    site.service.close()
    site.settings = replace(site.settings, act=replace(site.settings.act, mode="observe"))
    site.start()
    site.run(until=60)
    assert any(s.startswith("FOUND") for s in site.said)
    assert not any(s.startswith("SET") for s in site.said)


def test_changelogs_are_cleared_only_after_the_journal_knows(site: Site) -> None:
    site.run(until=45)
    kept = Journal(Path(site.settings.act.journal)).positions()
    assert site.filesystem.cleared == {("MDT0000", "cl1"): kept["MDT0000"]}
    assert kept["MDT0000"] > 100


def test_a_restart_goes_on_where_it_was_and_closes_what_was_under_way(site: Site) -> None:
    site.run(until=55)
    journal = Journal(Path(site.settings.act.journal))
    (entry,) = journal.entries()
    journal._db.execute("UPDATE actions SET outcome = NULL")
    positions = journal.positions()
    site.service.close()
    site.start()
    assert any("found unfinished: set-default-layout of /proj/ingest: done" in s for s in site.said)
    assert [e.outcome for e in journal.entries()] == ["done"]
    site.cluster.advance(5)
    site.service.cycle()
    assert journal.positions()["MDT0000"] >= positions["MDT0000"]
    assert entry.id == 1


def test_the_pause_file_stops_everything_until_it_is_removed(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    pause = site.folder / "pause"
    pause.write_text("power work until noon\n")
    site.run(until=60)
    assert "nothing was done yet" in shown(capsys, "history", site=site)
    assert "power work until noon" in shown(capsys, "status", site=site)
    assert sum("nothing new is done" in s for s in site.said) == 1
    pause.unlink()
    site.run(until=70)
    assert "changes are made again" in site.said
    assert "set-default-layout" in shown(capsys, "history", site=site)
    pause.touch()
    assert main(["undo", "1", "--socket", site.socket]) == 1
    assert "refused" in capsys.readouterr().err
    pause.unlink()
    assert "undone" in shown(capsys, "undo", "1", site=site)


def test_every_source_states_its_age(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert "source counters: nothing yet" in shown(capsys, "status", site=site)
    site.run(until=10)
    site.cluster.advance(7)
    status = shown(capsys, "status", site=site)
    assert "source counters: 7 s old" in status
    assert "source changelog: 7 s old" in status
    _, metrics = fetched(site, "/metrics")
    families = text_string_to_metric_families(metrics)
    samples = {(s.name, s.labels.get("source", "")): s.value for f in families for s in f.samples}
    assert samples["tierd_source_age_seconds", "counters"] == pytest.approx(7)
    assert samples["tierd_source_age_limit_seconds", "changelog"] == 90
    assert samples["tierd_source_stale", "counters"] == 0
    site.cluster.advance(100)
    assert "source counters: 107 s old, and must be no older than 90 s" in shown(capsys, "status", site=site)


def test_metrics_health_and_a_page(site: Site) -> None:
    site.run(until=55)
    _, metrics = fetched(site, "/metrics")
    families = list(text_string_to_metric_families(metrics))
    assert {s.labels.get("fs") for f in families for s in f.samples if s.name.startswith("tierd_")} == {"lustre"}
    samples = {s.name + json.dumps({k: v for k, v in s.labels.items() if k != "fs"}): s.value
               for f in families for s in f.samples}
    assert samples['tierd_findings_total{"kind": "noisy-neighbour"}'] == 1
    assert samples['tierd_default_layouts_total{"outcome": "done"}'] == 1
    assert samples['tierd_dry_run{}'] == 0
    assert samples['tierd_source_blind{"source": "counters"}'] == 0
    assert samples['tierd_breaker_open{}'] == 0
    assert samples['tierd_refusals_total{"reason": "no-room"}'] == 0
    assert samples['tierd_undone_total{}'] == 0
    assert samples['tierd_last_event_timestamp_seconds{"event": "undo"}'] == 0
    begun = samples['tierd_last_event_timestamp_seconds{"event": "default-layout"}']
    assert site.cluster.epoch - 55 < begun <= site.cluster.epoch
    pair = '{"aggressor": "mdt_small.1001", "victim": "ior_stream.1002"}'
    assert samples[f"tierd_victim_usual_bytes_per_second{pair}"] > 1e7
    assert samples[f"tierd_victim_bytes_per_second{pair}"] > 1e6
    slow = [v for k, v in samples.items() if k.startswith("tierd_interference_slowdown") and "OST0003" in k]
    assert slow[0] > 1.2
    assert samples["tierd_claim_generation{}"] == 0
    assert samples["tierd_budget_files{}"] > 0
    assert samples["tierd_journal_bytes{}"] > 4096
    assert 0 <= samples["tierd_changelog_lag_seconds{}"] < 30
    assert samples['tierd_changelog_position{"mdt": "MDT0000"}'] > 100
    assert fetched(site, "/-/healthy") == (200, "well\n")
    assert fetched(site, "/-/ready") == (200, "well\n")
    status, page = fetched(site, "/")
    assert status == 200
    assert "mdt_small.1001" in page
    assert "/proj/ingest" in page
    assert fetched(site, "/none")[0] == 404
    assert fetched(site, "/-/evaluate", "POST")[0] == 202
    assert fetched(site, "/", "POST")[0] == 405
    assert fetched(site, "/-/evaluate") == (405, "GET, or POST to /-/evaluate\n")
    assert "<p>F1: ior_stream.1002 streams at" in page


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on the PATH")
def test_promtool_likes_the_metrics(site: Site) -> None:
    site.run(until=55)
    _, metrics = fetched(site, "/metrics")
    lint = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True, capture_output=True, check=False)
    assert (lint.returncode, lint.stderr) == (0, "")


def test_two_daemons_share_neither_journal_nor_socket_nor_port(site: Site) -> None:
    assert site.service.web is not None
    port = site.service.web.port
    second = Site(site.cluster, site.filesystem, site.settings, site.folder)
    with pytest.raises(OSError, match="another tierd writes this journal"):
        second.start()
    act = replace(site.settings.act, journal=str(site.folder / "other/journal.sqlite"))
    second.settings = replace(site.settings, act=act)
    with pytest.raises(ControlError, match="another tierd answers here"):
        second.start()
    second.settings = replace(second.settings, act=replace(act, socket=str(site.folder / "other.sock")),
                              web=replace(site.settings.web, port=port))
    with pytest.raises(OSError, match=r"Address already in use: choose another web\.port"):
        second.start()
    assert not (site.folder / "other.sock").exists()
    second.settings = replace(second.settings, web=site.settings.web)
    second.start()
    assert ask(second.socket, {"request": "status"})["paused"] == ""
    second.service.close()
    assert ask(site.socket, {"request": "status"})["paused"] == ""


def test_a_scrape_does_not_wait_for_a_long_cycle(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "PATIENCE_SECONDS", 0.05)
    site.run(until=10)
    _, before = fetched(site, "/metrics")
    with site.service._lock:
        status, during = fetched(site, "/metrics")
        assert fetched(site, "/-/ready")[0] == 200
    assert status == 200
    kept = [line for line in before.splitlines() if line.startswith("tierd_cycle")]
    assert kept
    assert [line for line in during.splitlines() if line.startswith("tierd_cycle")] == kept


def test_alertmanager_sends_a_body_and_has_it_read(site: Site) -> None:
    assert site.service.web is not None
    body = json.dumps({"status": "firing", "alerts": [{"labels": {"alertname": "x" * 200_000}}]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{site.service.web.port}/-/evaluate", data=body, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 202


def test_a_cycle_that_hangs_is_no_sign_of_life(site: Site) -> None:
    site.run(until=10)
    assert site.service.beat()
    site.service._board.cycle_begun_at = site.cluster.epoch
    site.cluster.advance(600)
    assert site.service.beat()
    assert fetched(site, "/-/healthy")[0] == 200
    site.cluster.advance(400)
    assert not site.service.beat()
    assert fetched(site, "/-/healthy")[0] == 503
    site.service._board.cycle_begun_at = 0.0


def test_each_cycle_is_told_in_a_sentence(site: Site) -> None:
    site.cluster.advance(5)
    assert site.service.cycle() == "looked; the next look tells what goes on"
    site.run(until=55)
    site.cluster.advance(5)
    assert re.fullmatch(r"2 jobs on 6 targets, \d findings?; 0\.\d s; 1 case being judged", site.service.cycle())


def test_every_metric_is_documented(site: Site) -> None:
    _, metrics = fetched(site, "/metrics")
    page = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")
    names = set(re.findall(r"^# TYPE (tierd_\w+) ", metrics, re.MULTILINE))
    assert len(names) > 35
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_unknown_requests_are_answered_with_what_is_known(site: Site) -> None:
    with pytest.raises(ControlError, match="unknown request 'reboot'; known: advise, demote, drain, explain, findings"):
        ask(site.socket, {"request": "reboot"})
    with pytest.raises(ControlError, match="the journal has no act 99"):
        ask(site.socket, {"request": "undo", "id": 99})


@pytest.mark.parametrize("line", [
    b"", b"\xff\xfe\n", b"[]\n", b'{"request": {"a": []}}\n', b'{"request":"undo","id":"x"}\n'])
def test_odd_requests_do_no_harm(site: Site, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(site.socket)
        to.sendall(line)
        to.shutdown(socket.SHUT_WR)
        assert "error" in json.loads(to.makefile("rb").read())
    assert ask(site.socket, {"request": "status"})["paused"] == ""


def test_no_daemon_says_what_to_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--socket", str(tmp_path / "none.sock")]) == 1
    assert "no such socket: is tierd running" in capsys.readouterr().err


def test_started_by_hand_the_folder_of_the_socket_is_made(tmp_path: Path) -> None:
    """Under the unit systemd has made /run/tierd; the README's way, by hand, nobody has."""
    server = ControlServer(str(tmp_path / "run/tierd/tierd.sock"), lambda _: {"ok": 1})
    try:
        assert ask(str(tmp_path / "run/tierd/tierd.sock"), {"request": "status"}) == {"ok": 1}
    finally:
        server.close()
    assert (tmp_path / "run/tierd").stat().st_mode & 0o777 == 0o755


def test_a_socket_left_by_a_killed_daemon_is_taken_over(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "s"))
    left.close()
    server = ControlServer(str(tmp_path / "s"), lambda _: {"ok": 1})
    assert ask(str(tmp_path / "s"), {}) == {"ok": 1}
    server.close()
    assert not (tmp_path / "s").exists()


def test_systemd_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})(READY="1", STATUS="at work")
        assert systemd.recv(1000) == b"READY=1\nSTATUS=at work"
    Notifier({})(READY="1")
    Notifier({"NOTIFY_SOCKET": os.fspath(tmp_path / "gone")})(READY="1")
