"""An MDT that shows a record late, and one that really loses records, under a whole daemon."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from simulator.costs import PRODUCTION
from simulator.fluid.cluster import FluidCluster
from simulator.scenarios.events import Event, schedule
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import NOISE, STREAM, world
from tests.tierd.site import READ_AGAIN, Clearing, Site, acting, altered
from tierd.act.claim import Claim, ClaimFolder
from tierd.acts import Outcome
from tierd.sense.changelogs.follow import Follower
from tierd.sense.readings import Reading
from tierd.simulation.world import parameter_files

LATE = [Event(0, "changelog_late", {"target": target, "every": 7, "seconds": 1.0}) for target in ("MDT0000", "MDT0001")]


def test_late_records_stop_nothing(tmp_path: Path) -> None:
    """Each read in which the neighbour works ends at a record that is late: no record is lost, and acts go on."""
    at = world(tmp_path, jobs=(STREAM, READ_AGAIN))
    at.cluster.namespace.lookup(NOISE.directory).mdt_index = 1
    schedule(LATE, at.cluster)
    follower = cast("Follower", at.source.follower)
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


def test_after_a_real_gap_of_one_mdt_acts_continue(tmp_path: Path) -> None:
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
    assert said.endswith(" learns it again from new records")
    assert "changelog" not in faults
    assert len(list(at.journal.entries(Outcome.DONE))) > before


def test_no_act_begins_after_a_reader_was_thrown_out(tmp_path: Path) -> None:
    at = world(tmp_path, jobs=(STREAM, READ_AGAIN))
    schedule([Event(31, "changelog_deregistered", {"target": "MDT0000"})], at.cluster)
    at.run(150)
    assert any("changelog of MDT0000" in sentence for sentence in at.said)
    assert list(at.journal.entries()) == []


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
    assert site.service.records_wait_for().endswith("looks up paths of directories slowly")


# A changelog that is cut off while tierd runs: reported within two cycles, and no act starts


CYCLE = 5.0


class Client(Site):
    """tierd on a client that is not the MDS, with exporters that show no changelogs."""

    def __init__(self, folder: Path, reader: str, dry_run: bool = False,
                 hide: Callable[[Reading], Reading] = lambda reading: replace(reading, changelogs={})) -> None:
        cluster = FluidCluster(recorded_test_bed(), (STREAM, NOISE))
        settings = altered(acting(folder, sense={"readers": {"MDT0000": reader} if reader else {}}),
                           act={"dry_run": dry_run})
        super().__init__(cluster, Clearing(cluster), settings, folder)
        read = parameter_files(cluster, folder / "node")
        claim = Claim(ClaimFolder(folder / ".tierd"), "host=a", lambda: cluster.now, settings.claim)
        self.parts = {"read": lambda: hide(read()), "mdts": ["MDT0000"], "claim": claim}
        self.start()


def test_on_a_client_it_is_known_by_clearing(tmp_path: Path) -> None:
    at = Client(tmp_path, "cl1")
    schedule([Event(37, "changelog_deregistered", {"target": "MDT0000"})], at.cluster)
    at.run(35)
    assert not [words for words in at.said if words.startswith("changelog")]
    at.run(37 + 3 * CYCLE)
    (said,) = [words for words in at.said if words.startswith("changelog of MDT0000: ")]
    assert "lctl --device lustre-MDT0000 changelog_register" in said
    assert "starts no new acts" in said
    status = at.shown("status")
    assert "source changelog: " in status
    assert "lctl --device lustre-MDT0000 changelog_register" in status
    acts = list(at.service.journal.entries())
    at.run(90)
    assert [entry for entry in at.service.journal.entries() if entry.outcome == "done"] == acts
    at.service.close()


def test_in_a_dry_run_the_status_says_what_is_not_known(tmp_path: Path) -> None:
    at = Client(tmp_path, "", dry_run=True)
    schedule([Event(12, "changelog_deregistered", {"target": "MDT0000"})], at.cluster)
    at.run(25)
    assert "whether MDT0000 still records is not known" in at.shown("status")
    at.service.close()


def test_on_the_mds_a_dry_run_knows_it_too(tmp_path: Path) -> None:
    at = Client(tmp_path, "cl1", dry_run=True, hide=lambda reading: reading)
    schedule([Event(22, "changelog_deregistered", {"target": "MDT0000"})], at.cluster)
    at.run(22 + 2 * CYCLE)
    assert any("its user cl1 is not registered" in words for words in at.said)
    at.service.close()
