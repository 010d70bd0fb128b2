from collections.abc import Mapping

import pytest

from lustre.layout.directory import DefaultStriping, DirectoryStripes
from tests.tierd.policies.views import halves, look, reads_whole
from tests.tierd.worlds import MIB
from tierd.model import MAX_CLIENTS, DirectoryActivity, DirectoryPlacement, Facts, Finding, Window
from tierd.policies.metadata_storm import POLICY, rate_below


def found(*activities: DirectoryActivity, targets: int = 2, active: bool = False,
          placement: DirectoryPlacement | None = None, job_nodes: Mapping[str, int] = {},
          windows: list[Window] | None = None) -> list[Finding]:
    places = {"/proj/out": placement} if placement else {}
    return look(POLICY, windows, Facts(directories=activities, directory_seconds=600.0, latest_directories=activities,
                                       latest_seconds=100.0, metadata_targets=targets, placements=places,
                                       job_nodes=job_nodes),
                active={("metadata-storm", "", "/proj/out")} if active else ())


def storm(rate: float, opens: float = 0.0, job: str = "m.1", place: str = "/proj/out",
          clients: int = 0) -> DirectoryActivity:
    return DirectoryActivity(job, place, creates=round(100 * rate), opens=round(100 * opens),
                             clients=tuple(f"10.0.0.{number}@tcp" for number in range(clients)))


def test_a_storm_in_one_directory_is_reported_with_its_jobs() -> None:
    (finding,) = found(storm(400), storm(300, job="n.2"), storm(50, place="/proj/else"))
    assert finding.sentence == ("/proj/out has 700 creates, 0 opens and 0 unlinks/s, 93% of all metadata "
                                "operations, by m.1, n.2")
    assert finding.advice[0].command.startswith("lfs mkdir -c 2 NEW_DIRECTORY")


def test_many_directories_with_few_operations_each_are_not_reported() -> None:
    assert found(*(storm(100, place=f"/d{n}") for n in range(20))) == []


def test_a_storm_after_a_quiet_time_is_measured_by_the_last_half_minute() -> None:
    """18,000 creates in half a minute are 600 a second, and 30 a second over ten minutes."""
    now = DirectoryActivity("m.1", "/proj/out", creates=18_000)
    (finding,) = look(POLICY, facts=Facts(directories=(now,), directory_seconds=600.0, latest_directories=(now,),
                                          latest_seconds=30.0, metadata_targets=2))
    assert finding.evidence.numbers()["creates_per_second"] == 600
    assert finding.evidence.numbers()["parent_operations_per_second"] == 600


def test_the_steps_of_a_job_are_one_finding() -> None:
    """Each step has a directory of its own for half a minute only."""
    keys = set()
    for step in (3, 4):
        past = [storm(600, place=f"/proj/steps/s{number}", clients=2) for number in range(step + 1)]
        (finding,) = look(POLICY, facts=Facts(directories=tuple(past), directory_seconds=600.0, metadata_targets=2,
                                              latest_directories=(past[-1],), latest_seconds=30.0))
        assert finding.directories[:2] == (f"/proj/steps/s{step}", "/proj/steps/s0")
        assert "lfs setdirstripe -D -c 1 -i -1 PARENT" in commands(finding)
        keys.add(finding.key)
    assert keys == {("metadata-storm", "", "/proj/steps/*")}


def test_short_steps_count_together_however_many_were_before() -> None:
    past = [storm(300, place=f"/proj/steps/s{number:03}", clients=2) for number in range(40)]
    (finding,) = look(POLICY, facts=Facts(directories=tuple(past), directory_seconds=600.0, metadata_targets=2,
                                          latest_directories=tuple(past[-3:]), latest_seconds=100.0))
    assert finding.directories[:3] == ("/proj/steps/s037", "/proj/steps/s038", "/proj/steps/s039")
    assert finding.sentence.startswith("/proj/steps/* has 900 creates")


def test_the_rate_before_an_act_counts_the_parent_itself_as_the_rate_after_it_does() -> None:
    activities = storm(800, place="/proj/run/s1"), storm(60, place="/proj/run")
    (finding,) = found(*activities)
    before = finding.evidence.numbers()["parent_operations_per_second"]
    assert before == rate_below("/proj/run", Facts(directories=activities, directory_seconds=100.0)) == 860


def test_steps_that_end_within_a_half_minute_count_together_if_several_nodes_make_them() -> None:
    steps = [storm(300, place=f"/proj/steps/s{number}", clients=2) for number in range(2)]
    (finding,) = found(*steps)
    assert finding.sentence.startswith("/proj/steps/* has 600 creates, 0 opens and 0 unlinks/s")
    assert ", by m.1 on 2 nodes" in finding.sentence
    assert found(*(storm(300, place=f"/proj/own/p{number}", clients=1) for number in range(2))) == []
    assert [each.key for each in found(*steps, storm(310, place="/proj/other"))] == [finding.key]
    (busiest,) = found(storm(600, place="/proj/run/a"), storm(130, place="/proj/run/b"),
                       storm(9, opens=560, place="/proj/run/c"))
    assert busiest.directories == ("/proj/run/a", "/proj/run/b")


def test_hysteresis() -> None:
    assert found(storm(400)) == []
    assert found(storm(400), active=True)


def commands(finding: Finding) -> list[str]:
    return [piece.command for piece in finding.advice]


def test_the_stripes_that_a_directory_has_are_named() -> None:
    (one,) = found(storm(800), placement=DirectoryPlacement(DirectoryStripes(0, 1), None))
    assert one.sentence.endswith("; it is on MDT0001 only")
    assert any(command.startswith("lfs mkdir -c 2") for command in commands(one))
    assert one.evidence.numbers()["stripes"] == 0
    (two,) = found(storm(800), targets=4, placement=DirectoryPlacement(DirectoryStripes(2, 0, "crush"), None))
    assert two.sentence.endswith("; it is striped over 2 MDTs (crush)")
    assert any(command.startswith("lfs mkdir -c 4") for command in commands(two))


ON_TWO = DirectoryPlacement(DirectoryStripes(2, 0, "crush"), None)
STRIPED_DEFAULT = DirectoryPlacement(DirectoryStripes(0, 0), DefaultStriping(2, -1, "crush", 1))


@pytest.mark.parametrize(("targets", "placement", "words"), [
    pytest.param(1, None, ("lfs mkdir",), id="one MDT"),
    pytest.param(2, ON_TWO, ("lfs mkdir", "lfs migrate -m"), id="on all MDTs"),
    pytest.param(2, STRIPED_DEFAULT, ("setdirstripe -D -c 2",), id="a striped default"),
])
def test_no_advice_to_stripe_where_it_does_not_help(targets: int, placement: DirectoryPlacement | None,
                                                     words: tuple[str, ...]) -> None:
    (finding,) = found(storm(800), targets=targets, placement=placement)
    assert not any(word in command for command in commands(finding) for word in words)
    assert any("one directory per process" in command for command in commands(finding))


def test_a_migration_that_is_in_progress_comes_first() -> None:
    placement = DirectoryPlacement(DirectoryStripes(2, 0, "fnv_1a_64,migrating"), None)
    (finding,) = found(storm(800), placement=placement)
    assert commands(finding)[0].startswith("wait for its migration")


def test_advice_has_the_gain_of_the_papers_and_the_cost_of_a_migration() -> None:
    (two,) = found(storm(800))
    assert "four MDTs did 1.95 times the creates of one MDT, 2.36 times the stats" in two.advice[0].effect
    assert "two did 1.37 times the creates, with a directory for each process (Dell, Intel)" in two.advice[0].effect
    assert "one node gains nothing" in two.advice[0].effect
    assert "lfs setdirstripe -D -c 1 -i -1 PARENT" not in commands(two), "it does not spread one directory"
    (cost,) = [piece.effect for piece in two.advice if piece.command.startswith("lfs migrate -m")]
    assert "at least 80,000" in cost
    assert "new FID" in cost


def test_a_job_on_one_node_is_not_advised_to_stripe() -> None:
    (finding,) = found(storm(800, clients=1))
    assert "by m.1 on one node, which gains nothing from more MDTs here" in finding.sentence
    assert finding.evidence.numbers()["nodes"] == 1
    assert not any("MDT" in piece.effect or "dirstripe" in piece.command for piece in finding.advice)
    assert commands(finding) == ["use one directory per process or node instead of a shared directory"]


def test_clients_of_several_jobs_are_counted_once() -> None:
    (one,) = found(storm(400, clients=2), storm(400, job="n.2", clients=3))
    assert one.sentence.endswith("by m.1, n.2 on 3 nodes")
    (many,) = found(storm(800, clients=MAX_CLIENTS))
    assert many.sentence.endswith("by m.1 on at least 8 nodes")


def test_a_few_operations_of_another_node_do_not_count() -> None:
    login = DirectoryActivity("ls.0", "/proj/out", opens=50, clients=("10.0.9.9@tcp",))
    (finding,) = found(storm(800, clients=1), login)
    assert finding.evidence.numbers()["nodes"] == 1


def test_without_clients_in_the_changelog_the_scheduler_counts_the_nodes() -> None:
    assert found(storm(800))[0].evidence.numbers()["nodes"] == 0
    assert found(storm(800), job_nodes={"m.1": 1})[0].evidence.numbers()["nodes"] == 1
    (finding,) = found(storm(800), job_nodes={"m.1": 16})
    assert finding.sentence.endswith("by m.1 on 16 nodes")
    both = storm(400), storm(400, job="n.2")
    assert found(*both, job_nodes={"m.1": 1, "n.2": 1})[0].evidence.numbers()["nodes"] == 0, "one node, or two"
    assert found(*both, job_nodes={"m.1": 4})[0].evidence.numbers()["nodes"] == 0
    assert found(*both, job_nodes={"m.1": 4, "n.2": 2})[0].sentence.endswith("by m.1, n.2 on at least 4 nodes")


def advised(creates: int, opens: int, windows: list[Window] | None = None) -> str:
    (finding,) = found(storm(creates, opens=opens), windows=windows)
    return "\n".join(commands(finding))


def test_a_storm_of_opens_does_not_wait_for_the_lock_on_the_directory() -> None:
    assert "one directory per process" in advised(800, 0)
    assert "one directory per process" not in advised(10, 800)


def test_a_layout_for_new_files_does_nothing_for_existing_ones() -> None:
    assert "lfs migrate --non-block -E 64K -L mdt" in advised(0, 800)
    assert "lfs setstripe -E 64K -L mdt" in advised(100, 800)
    assert "-L mdt" not in advised(100, 800, halves(reads_whole("m.1", 50, MIB)))
