"""Files that are opened for writing and only read."""

from dataclasses import replace

import pytest

from lustre.changelog.record import decode
from simulator.cluster import Cluster
from simulator.filesystem import SimulatedFilesystem
from simulator.jobs.large_files import RandomWriter
from simulator.settings import recorded_test_bed
from tests.tierd.policies.views import halves, look
from tests.tierd.worlds import TARGETS
from tierd.model import DirectoryActivity, Facts, Finding, JobLoad
from tierd.policies.opened_for_writing import POLICY
from tierd.sense.changelogs.table import ActivityTable

ACTIVITY = DirectoryActivity("post.3", "/proj/in", opens=100, closes=100, write_opens=90)


def found(activity: DirectoryActivity = ACTIVITY, read: float = 1e9, written: float = 0.0,
          active: set[tuple[str, str, str]] | None = None) -> list[Finding]:  # fmt: skip
    load = JobLoad(TARGETS[0], "post.3", read_bytes=read, write_bytes=written, reads=read / 1e6, writes=written / 1e6)
    return look(POLICY, halves([load]), Facts(directories=(activity,)), active or ())


def test_a_job_that_opens_for_writing_and_only_reads_is_advised_to_open_read_only() -> None:
    (one,) = found()
    assert (one.aggressor, one.subject, one.advice_only) == ("post.3", "/proj/in", True)
    assert "90% of its opens" in one.sentence
    assert "O_RDONLY" in one.advice[0].command


@pytest.mark.parametrize("changes", [{"write_opens": 20}, {"creates": 50}, {"opens": 1000}, {"job": "other.1"}])
def test_few_opens_for_writing_new_files_and_jobs_that_write_are_not_reported(changes: dict[str, int]) -> None:
    assert found(replace(ACTIVITY, **changes)) == []  # type: ignore[arg-type]
    assert found(written=1e8) == found(read=0.0) == []


def test_hysteresis() -> None:
    some = replace(ACTIVITY, opens=225)
    assert found(some) == []
    assert found(some, active={("opened-for-writing", "post.3", "/proj/in")})


def test_the_changelog_shows_opens_for_writing() -> None:
    cluster = Cluster(recorded_test_bed(), (RandomWriter(read_share=1.0, file_bytes=1 << 20, processes_count=8),))
    cluster.advance(2)
    filesystem = SimulatedFilesystem(cluster)
    table = ActivityTable(filesystem.path_of)
    for mdt in cluster.mdts:
        table.add([decode(filesystem.changelog(mdt.short_name, 0))[0]])
    (activity,) = table.of_job("fio_rand.1001", 0.0)
    assert (activity.opens, activity.write_opens) == (1, 1), "one for all processes of a node"
