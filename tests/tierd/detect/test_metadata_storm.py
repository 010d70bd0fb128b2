from __future__ import annotations

from tests.tierd.detect.views import look
from tierd.detect.metadata_storm import DETECTOR
from tierd.model import DirectoryActivity, Facts, Finding


def found(*activities: DirectoryActivity, targets: int = 2, seconds: float = 100.0, active: bool = False,
          ) -> list[Finding]:
    return look(DETECTOR, facts=Facts(directories=activities, directory_seconds=seconds, metadata_targets=targets),
                active={("metadata-storm", "", "/proj/out")} if active else ())


def storm(rate: float, opens: float = 0.0, job: str = "m.1", place: str = "/proj/out") -> DirectoryActivity:
    return DirectoryActivity(job, place, creates=round(100 * rate), opens=round(100 * opens))


def test_a_storm_in_one_directory_is_reported_with_its_jobs() -> None:
    (finding,) = found(storm(400), storm(300, job="n.2"), storm(50, place="/proj/else"))
    assert finding.sentence == ("/proj/out has 700 creates, 0 opens and 0 unlinks/s, 93% of all metadata "
                                "operations, by m.1, n.2")
    assert finding.advice[0].command.startswith("lfs mkdir -c 2 NEW_DIRECTORY")


def test_one_mdt_cannot_spread_names() -> None:
    (finding,) = found(storm(800), targets=1)
    assert not any("lfs mkdir" in piece.command for piece in finding.advice)


def test_where_files_are_read_data_on_the_mdt_is_offered() -> None:
    (finding,) = found(storm(100, opens=800))
    assert any("-L mdt" in piece.command for piece in finding.advice)


def test_many_directories_with_a_little_each_are_well() -> None:
    assert found(*(storm(100, place=f"/d{n}") for n in range(20))) == []


def test_a_storm_is_not_reported_after_a_short_observation() -> None:
    assert found(storm(800), seconds=30.0) == []


def test_hysteresis() -> None:
    assert found(storm(400)) == []
    assert found(storm(400), active=True)
