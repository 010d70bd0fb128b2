"""The further findings in the whole loop, on the simulated test bed."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Component, Layout, explain, same_shape
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.jobs import Job
from simulator.jobs.metadata import StepFiles
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.mdt import MdtSettings
from simulator.settings import recorded_test_bed
from tests.tierd.simulated import COVERING, HDD, MIB, NOISE, World, world
from tests.tierd.worlds import window
from tierd.acts import ActKind, Outcome
from tierd.config.load import parse
from tierd.config.settings import Settings
from tierd.detect.view import View
from tierd.engine import Engine
from tierd.model import Evidence, Finding
from tierd.policies.protocol import Common, ConfiguredPolicy, Policy
from tierd.simulation import world as simulation

TOO_SMALL = Layout((Component(0, 128 << 10, "flash"), Component(128 << 10, None, "hdd")))
OUTGROWING = replace(NOISE, layout=TOO_SMALL, start_seconds=0.0)
READING = SmallFileWriter(job_id="py.3", sizes=(64 << 10,), files_per_second=1.0, keep=3000, rereads_per_second=30.0,
                          directory="/sw/lib")
FILLING = SmallFileWriter(job_id="fill.4", directory="/old", sizes=(16 * MIB,), files_per_second=8.0, keep=10_000,
                          layout=Layout((Component(pool="flash"),), composite=False), stop_seconds=30.0)


def lived(tmp_path: Path, job: Job, until: float, text: str = "", dry_run: bool = False) -> World:
    """Flows know nothing of single files that are read again."""
    model = Cluster if job is READING else FluidCluster
    at = world(tmp_path, jobs=(job,), settings=parse(text.encode(), "t.toml"), dry_run=dry_run, model=model)
    at.run(until=until)
    return at


def test_a_component_that_is_outgrown_is_made_larger(tmp_path: Path) -> None:
    at = lived(tmp_path, OUTGROWING, 150)
    layout = at.filesystem.layout("/proj/ingest")
    assert layout is not None
    assert explain(layout) == "first 1M on flash (1 stripe), rest on hdd (1 stripe)"
    assert sum(s.startswith("SET default layout") for s in at.said) == 1
    assert [e.kind for e in at.journal.entries()] == ["set-default-layout"]


def test_a_dry_run_says_it_once(tmp_path: Path) -> None:
    at = lived(tmp_path, OUTGROWING, 240, dry_run=True)
    assert at.filesystem.layout("/proj/ingest") == TOO_SMALL
    assert sum(s.startswith("WOULD SET default layout") for s in at.said) == 1


@pytest.mark.parametrize(("job", "text", "found"), [
    (OUTGROWING, "[act]\non = []\n", "FOUND outgrown-component"),
    (OUTGROWING, "[detect.outgrown_component]\nenabled = false\n", ""),
    (READING, "", "FOUND hot-small-files: py.3 reads small files")])
def test_findings_are_acted_on_only_if_configured(tmp_path: Path, job: Job, text: str, found: str) -> None:
    at = lived(tmp_path, job, 150, text)
    assert list(at.journal.entries()) == []
    assert [found in s for s in at.said if "FOUND" in s] == [True] * bool(found)


def test_hot_small_files_move_to_flash_after_their_directory(tmp_path: Path) -> None:
    at = lived(tmp_path, READING, 200, "[act]\non = ['hot-small-files']\n")
    kinds = [entry.kind for entry in at.journal.entries(Outcome.DONE)]
    assert kinds[0] == "set-default-layout"
    assert kinds.count(ActKind.SET_DEFAULT_LAYOUT) == 1
    assert kinds.count(ActKind.MIGRATE) > 10
    moved = [entry.place for entry in at.journal.entries(Outcome.DONE) if entry.kind == "migrate"]
    assert len(set(moved)) == len(moved), "each once"
    assert not any("UNDOING" in s for s in at.said)


def test_files_that_were_tried_take_no_place_in_the_next_plan(tmp_path: Path) -> None:
    at = lived(tmp_path, READING, 150, "[act]\non = ['hot-small-files']\n[hot_files_to_flash]\nmax_moves = 5\n")
    (case,) = at.daemon.store
    now, plan = at.daemon.parts.node.clock.now(), at.daemon.planning.for_finding
    found = replace(case.finding, time=now + 60)  # all are closed for some time
    first, again = ({action.path for action in plan(found, tried).actions if action.path} for tried in ((), case.tried))
    assert case.tried & first, "moved files are still read the most"
    assert len(again) == 5
    assert again.isdisjoint(case.tried)


def test_findings_of_jobs_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    """The time of each plan was kept for good, unless something was done."""
    at = world(tmp_path, jobs=(), settings=parse(b"[act]\non = ['hot-small-files']\n", "t.toml"))
    acts = at.daemon.remediations
    for number in range(9):
        acts.act([Finding("hot-small-files", float(number), f"j.{number}", "", (), "", evidence=Evidence())])
    assert [name for name, kept in vars(acts).items() if isinstance(kept, dict) and len(kept) > 1] == []


COLD = "[detect.cold_on_flash]\ncold_days = 0.001\n[cold_to_disk]\ndirectories = ['/old']\n"


def test_cold_files_leave_flash_when_it_is_short_and_only_until_it_is_not(tmp_path: Path) -> None:
    at = lived(tmp_path, FILLING, 400, COLD + "[limits]\nbytes_per_second = 1e9\nfiles_per_second = 100\n")
    assert any("FOUND cold-on-flash: pool flash is" in s for s in at.said)
    entries = list(at.journal.entries())
    assert entries
    assert {(e.kind, e.outcome) for e in entries} == {("migrate", "done")}
    used = 1 - sum(at.filesystem.space()[t].avail_bytes for t in at.filesystem.pools()["flash"]) / sum(
        at.filesystem.space()[t].size_bytes for t in at.filesystem.pools()["flash"])
    assert 0.55 < used < 0.71
    layout = at.filesystem.layout(entries[0].place)
    assert layout is not None
    assert same_shape(layout, HDD)


def test_nothing_leaves_flash_while_there_is_room(tmp_path: Path) -> None:
    at = lived(tmp_path, replace(FILLING, files_per_second=2.0), 300, COLD)
    assert list(at.journal.entries()) == []


def test_files_that_flash_holds_whole_give_no_cause(tmp_path: Path) -> None:
    assert lived(tmp_path, replace(NOISE, layout=COVERING), 150).said == []


def wet(view: View, _: Common) -> Iterator[Finding]:
    yield Finding("wet", view.now, "", "", (), "it rains", Evidence(), subject="garden")


def test_after_a_gap_earlier_findings_no_longer_hold() -> None:
    engine = Engine(replace(Settings(), policies=(ConfiguredPolicy(Policy("wet", Common, wet), Common()),)))
    held = [bool(engine.run_cycle(window(n), lambda *_: ()).findings) for n in (*range(12), *range(200, 206))]
    assert held == [False] * 11 + [True] + [False] * 5 + [True]


def broken(_: View, __: Common) -> Iterator[Finding]:
    raise ZeroDivisionError("of theirs")


def test_a_failing_plugin_is_reported_and_other_policies_continue(tmp_path: Path) -> None:
    theirs = ConfiguredPolicy(Policy("theirs", Common, broken), Common())
    at = world(tmp_path, jobs=(OUTGROWING,), settings=replace(Settings(), policies=(theirs, *Settings().policies)))
    at.run(until=150)
    line = broken.__code__.co_firstlineno + 1
    words = f"policy theirs failed: find: ZeroDivisionError: of theirs (test_further_findings.py:{line})"
    assert [s for s in at.said if "theirs" in s] == [words]
    assert words in at.daemon.faults.values()
    assert any(s.startswith("SET default layout") for s in at.said)


def test_the_omni_path_driver_of_a_busy_server_is_advised(tmp_path: Path) -> None:
    text = "[detect.omni_path]\nmin_rpcs_per_second = 5\n"
    folder = tmp_path / "node" / "sys" / "module" / "hfi1" / "parameters"
    folder.mkdir(parents=True)
    (folder / "krcvqs").write_text("2\n")
    at = lived(tmp_path, replace(NOISE, start_seconds=0.0), 150, text)
    (said,) = [words for words in at.said if words.startswith("FOUND omni-path: ")]
    assert said.endswith("parameters than Dell and Intel measured: krcvqs is 2 on 1 server ('this node')")


# A busy MDS in the whole loop, on the simulated test bed: many jobs, one job, and none


LOW = "[detect.metadata_bound]\nmin_operations_per_second = 5\n"


@pytest.mark.parametrize(("jobs", "threads", "cores", "work_factor", "words"), [
    (6, 6, 1, 20.0, r"threads are in use: processors, locks or threads limit it(?!.*causes)"),
    (1, 12, 1, 20.0, r"; steps\.0 causes 100% of the operations$"), (1, 1, 8, 1.0, "")],
    ids=["many jobs", "one job", "free processors"])
def test_a_busy_mds_is_found_and_one_job_is_named(
        tmp_path: Path, *, jobs: int, threads: int, cores: int, work_factor: float, words: str) -> None:
    """The busy ones are found after 84 s at the latest."""
    mdt = MdtSettings(cores=cores, work_factor=work_factor)
    every = tuple(StepFiles(f"steps.{n}", directory=f"/proj/steps{n}", threads=threads, files_each=2000, client=n % 2)
                  for n in range(jobs))
    cluster = Cluster(replace(recorded_test_bed(), mdts=(mdt,)), every)
    at = simulation.wire(cluster, parse(LOW.encode(), "t.toml"), tmp_path)
    at.daemon.facts.in_background = True  # as in the daemon: its own requests to the MDS are few
    for until in (40, 80, 100):
        at.daemon.facts.gather(at.daemon.parts.node.clock.now())
        at.run(until, cycle_seconds=10)
    found = [finding.sentence for finding in at.daemon.findings if finding.kind == "metadata-bound"]
    assert len(found) == bool(words)
    assert all(re.search(words, sentence) for sentence in found)
