"""The daemon with its socket and journal, over the simulated cluster; tierctl on the other side."""

import re
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lustre.layout.model import Component, Layout
from simulator.scenarios import events
from tests.tierd.site import Site, altered
from tests.tierd.worlds import noise
from tierd.act.journal.writer import Journal
from tierd.acts import ActKind, Outcome
from tierd.daemon import status
from tierd.daemon.client import ControlError
from tierd.daemon.loop import Daemon
from tierd.daemon.status import StatusSnapshot
from tierd.model import Action, Finding
from tierd.sense.readings import Reading
from tierd.simulation.world import parameter_files


def test_status_says_how_much_is_known_yet(site: Site) -> None:
    site.run(until=20)
    learning = "learning: {} of the 4 readings that a judgement of streams needs"
    assert learning.format(3) in site.shown("status")
    site.run(until=50)
    assert "learning" not in site.shown("status")
    events.clock_jump(site.cluster, -7200.0)
    site.run(until=65)
    assert learning.format(1) in site.shown("status")


def test_changelogs_are_cleared_only_after_the_journal_knows(site: Site) -> None:
    site.run(until=45)
    kept = Journal(Path(site.settings.act.journal)).positions()
    assert site.filesystem.cleared == {("MDT0000", "cl1"): kept["MDT0000"]}
    assert kept["MDT0000"] > 100


def test_the_pause_file_stops_everything_until_it_is_removed(site: Site) -> None:
    pause = site.folder / "pause"
    pause.write_text("power work until noon\n")
    site.run(until=60)
    assert "no acts yet" in site.shown("history")
    assert "power work until noon" in site.shown("status")
    assert "<b>PAUSED</b> <span>" in site.fetched("/")[1]
    assert sum("no new acts: " in s for s in site.said) == 1
    pause.unlink()
    site.run(until=70)
    assert "acts are possible again" in site.said
    assert "set-default-layout" in site.shown("history")
    pause.touch()
    assert "refused" in site.failed("undo", "1")
    pause.unlink()
    assert "undone" in site.shown("undo", "1")


def test_every_source_states_its_age(site: Site) -> None:
    assert "source counters: nothing yet" in site.shown("status")
    site.run(until=10)
    site.cluster.advance(7)
    status = site.shown("status")
    assert "source counters: 7 s old" in status
    assert "source changelog: 7 s old" in status
    _, metrics = site.fetched("/metrics")
    families = text_string_to_metric_families(metrics)
    samples = {(s.name, s.labels.get("source", "")): s.value for f in families for s in f.samples}
    assert samples["tierd_source_age_seconds", "counters"] == pytest.approx(7, abs=0.01)
    assert samples["tierd_source_age_limit_seconds", "changelog"] == 90
    assert samples["tierd_source_stale", "counters"] == 0
    site.cluster.advance(100)
    assert "source counters: 107 s old, and must be no older than 90 s" in site.shown("status")


def test_an_mdt_that_was_added_is_named_until_its_changelog_is_read(site: Site) -> None:
    """At first there was one; the client has found another one since."""
    site.parts["mdts"] = ["MDT0000"]
    site.restart()
    site.run(until=40)
    assert "MDT0001: added since tierd started" in site.shown("status")
    site.parts["mdts"] = ["MDT0000", "MDT0001"]
    site.restart()
    site.run(until=80)
    assert "added since" not in site.shown("status")


def test_the_mover_of_another_file_system_on_the_same_servers_stops_nothing(site: Site) -> None:
    read = parameter_files(site.cluster, site.folder / "node")

    def shared() -> Reading:
        here = read()
        elsewhere = {target: target.replace("-", "-2-") for target in here.targets}
        return replace(here, jobs={(elsewhere[target], "lfs.0"): entry for (target, _), entry in here.jobs.items()},
                       targets=here.targets.union(elsewhere.values()))

    site.parts["read"] = shared
    site.restart()
    site.run(until=30)
    assert "mover" not in site.service.daemon.faults


def test_two_daemons_share_neither_journal_nor_socket_nor_port(site: Site) -> None:
    port = site.service.web.port
    second = Site(site.cluster, site.filesystem, site.settings, site.folder)
    with pytest.raises(OSError, match="another tierd writes this journal"):
        second.start()
    second.settings = altered(site.settings, act={"journal": str(site.folder / "other/journal.sqlite")})
    with pytest.raises(ControlError, match="another tierd answers here"):
        second.start()
    second.settings = altered(second.settings, act={"socket": str(site.folder / "other.sock")}, web={"port": port})
    with pytest.raises(OSError, match=r"Address already in use: choose another web\.port"):
        second.start()
    assert not (site.folder / "other.sock").exists()
    second.settings = altered(second.settings, web=site.settings.web)
    second.start()
    assert second.ask("status")["paused"] == ""
    second.service.close()
    assert site.ask("status")["paused"] == ""


def test_each_cycle_is_reported_in_a_sentence(site: Site) -> None:
    site.cluster.advance(5)
    assert site.service.cycle() == "first reading; findings need a second one"
    site.run(until=55)
    site.cluster.advance(5)
    reported = site.service.cycle()
    assert re.fullmatch(r"2 jobs on 6 targets, \d findings?; 0\.\d s", reported)


def test_a_snapshot_does_not_replace_a_later_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    views: list[StatusSnapshot] = []

    def snapshot_of(_: Daemon) -> StatusSnapshot:
        views.append(view := StatusSnapshot())
        if len(views) == 1:
            wait([threads.submit(site.service._publish)], 0.2)
        return view

    monkeypatch.setattr(status, "snapshot_of", snapshot_of)
    with ThreadPoolExecutor(1) as threads:
        site.service._publish()
    assert site.service._view is views[1]


def test_old_acts_leave_the_journal_and_history_says_where_it_begins(site: Site) -> None:
    site.service.close()
    now, old = site.cluster.epoch, site.cluster.epoch - 40 * 86400.0
    journal = Journal(Path(site.settings.act.journal))
    finding = journal.add_finding(Finding("noisy-neighbour", old, "m", "s", (), "an old finding", noise()))
    for number, at in enumerate([old] * 600 + [now]):
        flash = Layout((Component(pool="flash"),))
        move = Action(ActKind.MIGRATE, flash, "because", ("", "", ""), path=f"/proj/{number}")
        journal.end(journal.intend(move, finding, None, at, dry_run=False), Outcome.DONE, "", at)
    journal.close()
    site.settings = altered(site.settings, journal={"keep_days": 30.0})
    site.start()
    site.run(until=site.cluster.now + 60)
    ended = site.shown("history", "--last", "1000").splitlines()
    assert ended[-1].startswith("the journal begins ")
    assert sum(" migrate " in line and "/proj/600" in line for line in ended) == 1
    assert not any("/proj/599" in line for line in ended)
