"""An MDT that shows a record late, and one that really loses records, under a whole daemon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from simulator.costs import PRODUCTION
from simulator.fluid.cluster import FluidCluster
from simulator.scenarios.events import Event, schedule
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import HDD, NOISE, STREAM, world
from tests.tierd.site import READ_AGAIN, Site
from tierd.acts import Outcome
from tierd.config.settings import Settings
from tierd.refusal import Reason
from tierd.sense.changelogs.follow import Follower
from tierd.sense.sources import LiveSource

LATE = [Event(0, "changelog_late", {"target": target, "every": 7, "seconds": 1.0}) for target in ("MDT0000", "MDT0001")]


def test_late_records_stop_nothing(tmp_path: Path) -> None:
    """Each read in which the neighbour works ends at a record that is late: no record is lost, and acts go on."""
    at = world(tmp_path, jobs=(STREAM, READ_AGAIN))
    at.cluster.namespace.lookup(NOISE.directory).mdt_index = 1
    schedule(LATE, at.cluster)
    follower = cast("Follower", cast("LiveSource", at.source).follower)
    faults: set[str] = set()
    ended_early = 0
    while at.cluster.now < 150:
        at.run(at.cluster.now + 5)
        faults |= at.daemon.faults.keys()
        ended_early += bool(follower.waiting)
    assert "changelog" not in faults
    assert not [sentence for sentence in at.said if "missing" in sentence]
    assert ended_early > 15
    assert len([entry for entry in at.journal.entries(Outcome.DONE) if entry.place.startswith(NOISE.directory)]) > 50
    at.cluster.stop(NOISE.job_id)
    at.run(at.cluster.now + 10)
    assert at.daemon.counters.records == sum(mdt.changelog.last_index for mdt in at.cluster.mdts), "each record once"


def test_after_a_real_gap_of_one_mdt_acts_go_on(tmp_path: Path) -> None:
    """Records of the first MDT are lost, where a quiet job works. The neighbour works on the second."""
    quiet = replace(NOISE, job_id="quiet.1004", directory="/proj/quiet", files_per_second=2.0, start_seconds=0.0)
    at = world(tmp_path, jobs=(STREAM, READ_AGAIN, quiet))
    at.cluster.namespace.lookup(NOISE.directory).mdt_index = 1
    schedule([Event(42, "changelog_gap", {"target": "MDT0000"})], at.cluster)
    faults: set[str] = set()
    at.run(42)
    before = len(list(at.journal.entries(Outcome.DONE)))
    while at.cluster.now < 120:
        at.run(at.cluster.now + 5)
        faults |= at.daemon.faults.keys()
    (said,) = [sentence for sentence in at.said if "are missing" in sentence]
    assert said.startswith("changelog of MDT0000: records ")
    assert said.endswith(" directories checked again; the table is complete again")
    assert "changelog" not in faults
    assert len(list(at.journal.entries(Outcome.DONE))) > before


def test_no_act_begins_in_a_directory_that_is_not_checked_yet(tmp_path: Path) -> None:
    slow = replace(Settings(), limits=replace(Settings().limits, files_per_second=0.5))
    at = world(tmp_path, jobs=(STREAM, READ_AGAIN), settings=slow)
    at.run_until_said("QUEUED", before=100)
    done, waiting = len(list(at.journal.entries(Outcome.DONE))), at.gate.waiting
    assert done
    assert waiting
    at.daemon.table.unchecked.add(NOISE.directory)
    at.run(at.cluster.now + 15)
    assert len(list(at.journal.entries(Outcome.DONE))) == done
    assert at.gate.waiting >= waiting
    (case,) = at.daemon.cases
    plan = at.daemon.planning.for_finding(replace(case.finding, directories=(NOISE.directory,)))
    assert ([refusal.reason for refusal in plan.refusals], plan.actions) == ([Reason.RECORDS_MISSING], ())
    default = replace(case.defaults[0].action, layout=HDD)
    at.gate.submit([default], case.number)
    assert at.gate.set_defaults() == []
    at.daemon.table.unchecked.clear()
    assert [act.action for act in at.gate.set_defaults()] == [default]
    at.run(at.cluster.now + 15)
    assert len(list(at.journal.entries(Outcome.DONE))) > done


def test_a_slow_walk_over_uncleared_records_is_not_a_file_system_that_does_not_answer(site: Site) -> None:
    """Another user has cleared nothing, so that each opening of the device walks all records."""
    costs = replace(PRODUCTION, kept_record_seconds=0.003)
    bed = replace(recorded_test_bed(), costs=costs)
    site.begin_again(FluidCluster(bed, (STREAM, NOISE)))
    site.cluster.mdts[0].changelog.register()
    walked: list[float] = []
    while site.cluster.now < 200:
        site.cluster.advance(5)
        begun = site.cluster.now
        site.service.take_in_records()
        walked.append(site.cluster.now - begun)
        site.service.cycle()
    assert max(walked) > 3.0
    assert "changelog" not in site.service.daemon.faults
    log = site.cluster.mdts[0].changelog
    assert log.users["cl1"].cleared_index > 1000
    assert site.service.records_wait_for().endswith("directories listed again, slowly")
