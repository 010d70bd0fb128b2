"""What tierd does is the same with every sentence replaced by an opaque code: enums, ids and columns decide.

The sentences are replaced where they enter a record, the journal or the log. Equal sentences stay equal.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.daemon import test_directory_striping
from tests.tierd.daemon.test_drain_target import FAST, NAME, make_files
from tests.tierd.simulated import STREAM
from tests.tierd.site import READ_AGAIN, Clearing, Site, acting
from tierd.act.drain import LeftFiles
from tierd.act.guard import OPT_OUT
from tierd.act.journal.writer import Journal
from tierd.act.movers.moves import MoveOutcome
from tierd.act.outcomes import CompletedAct
from tierd.act.undo import UndoResult
from tierd.config.act import DrainSettings
from tierd.daemon.log import FindingLog
from tierd.model import Action, Finding
from tierd.refusal import Refusal
from tierd.verify.judgement import Judgement

SENTENCES: tuple[tuple[type[Any], str], ...] = (
    (Refusal, "sentence"), (Finding, "sentence"), (Action, "reason"), (Judgement, "words"),
    (MoveOutcome, "detail"), (CompletedAct, "detail"), (UndoResult, "detail"), (LeftFiles, "sentence"))
Trace = list[object]


def opaque(sentence: str) -> str:
    return f"<{crc32(sentence.encode('utf-8', 'replace')):08x}>" if sentence and sentence[0] != "<" else sentence


@contextmanager
def opaque_sentences() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in SENTENCES:
            if issubclass(kind, tuple):
                names, new = kind._fields, kind.__new__  # type: ignore[attr-defined]
                patch.setattr(kind, "__new__", coded_call(new, names, name))
            else:
                patch.setattr(kind, "__init__", coded_call(kind.__init__, [each.name for each in fields(kind)], name))
        end, judged, add, log = Journal.end, Journal.judged, Journal.add_messages, FindingLog.all
        patch.setattr(Journal, "end", lambda self, entry, outcome, detail, now: end(
            self, entry, outcome, opaque(detail), now))
        made: Callable[..., None] = Finding.__init__
        patch.setattr(Finding, "__init__", lambda self, *values, advice=(), **named: made(
            self, *values, advice=tuple(each.replaced(effect=opaque(each.effect)) for each in advice), **named))
        patch.setattr(Journal, "judged", lambda self, entry, verdict, detail, now: judged(
            self, entry, verdict, opaque(detail), now))
        patch.setattr(Journal, "add_messages", lambda self, number, said, now: add(
            self, number, map(opaque, said), now))
        patch.setattr(FindingLog, "all", lambda self, said, *level: log(self, map(opaque, said), *level))
        yield


def coded_call(call: Callable[..., Any], names: Iterable[str], name: str) -> Callable[..., Any]:
    at = list(names).index(name)

    def coded(self: object, *values: Any, **named: Any) -> Any:
        if name in named:
            named[name] = opaque(named[name])
        elif len(values) > at:
            values = (*values[:at], opaque(values[at]), *values[at + 1:])
        return call(self, *values, **named)

    return coded


def site_of(cluster: Cluster | FluidCluster, folder: Path, **changed: object) -> Site:
    site = Site(cluster, Clearing(cluster), acting(folder, **changed), folder)
    site.start()
    return site


def acts(site: Site) -> list[tuple[object, ...]]:
    return [(act["id"], act["kind"], act["place"], act["outcome"], act["before"], act["after"])
            for act in site.ask("history", last=1000)["entries"]]


def cases(site: Site) -> list[tuple[object, ...]]:
    return [(case["finding"], case["kind"], case["state"], case["verdict"], case["directories"], case["waiting_moves"],
             [why["reason"] for why in case["why_not"]])
            for case in site.ask("overview")["cases"]]


def neighbour(folder: Path) -> Trace:
    """From the finding to the verdict, with a restart while its moves wait; then undone by hand."""
    site = site_of(FluidCluster(recorded_test_bed(), (STREAM, READ_AGAIN)), folder, limits={"files_per_second": 1.0})
    site.run_until(lambda: site.service.gate.waiting >= 25)
    trace: Trace = [cases(site)]
    site.restart()
    site.run_until(lambda: any(case[3] for case in cases(site)), before=400)
    trace += [cases(site), acts(site)]
    undone = site.ask("undo", id="F1")
    site.run(until=site.cluster.now + 60)
    trace += [undone["result"], undone["dropped_moves"], cases(site), acts(site)]
    site.service.close()
    assert {"undone", "done"} <= {str(act[3]) for act in trace[-1]}  # type: ignore[attr-defined]
    return trace


def opted_out(folder: Path) -> Trace:
    """Refused at first, and planned once the owner takes part again."""
    site = site_of(FluidCluster(recorded_test_bed(), (STREAM, READ_AGAIN)), folder)
    site.filesystem.set_xattr(READ_AGAIN.directory, OPT_OUT, b"off")
    site.run(until=80)
    trace: Trace = [cases(site), acts(site)]
    site.filesystem.set_xattr(READ_AGAIN.directory, OPT_OUT, b"on")
    site.run(until=200)
    trace += [cases(site), acts(site)]
    site.service.close()
    assert ["opted-out"] in [case[-1] for case in trace[0]]  # type: ignore[attr-defined]
    return trace


def striped(folder: Path) -> Trace:
    """A default striping is judged once, and kept."""
    at = test_directory_striping.storm(folder)
    while at.cluster.now < 1450 and not any(entry.detail for entry in at.journal.entries()):
        at.run(until=at.cluster.now + 50, cycle_seconds=10)
    verdicts = at.journal.db.execute("SELECT id, verdict, ended_at FROM actions")
    at.run(until=at.cluster.now + 100, cycle_seconds=10)
    assert verdicts == at.journal.db.execute("SELECT id, verdict, ended_at FROM actions"), "judged again"
    (entry,) = at.journal.entries()
    assert verdicts[0][1] == "helped"
    return [verdicts, entry.outcome, at.undo(entry, "by hand").outcome]


def restored(folder: Path) -> Trace:
    """A move that gives a file its earlier stripes is not undone itself."""
    at, case = test_directory_striping.slower(folder)
    at.run(until=80)
    assert test_directory_striping.stripes(at) == 1
    return [case.state, [(entry.kind, entry.outcome, entry.undoes) for entry in at.journal.entries()]]


def drained(folder: Path) -> Trace:
    """A drain that is continued after a restart, which drops its queued moves and finds them again."""
    site = site_of(
        Cluster(recorded_test_bed()), folder,
        drain=DrainSettings(scan_files_per_second=200.0, retry_seconds=5.0),
        limits={"files_per_second": 2.0, "bytes_per_second": 1e9, "per_pool": FAST, "per_target": FAST})
    make_files(site)
    site.run(until=5)
    site.ask("drain-target", target=NAME, by="root")
    site.run(until=15)
    site.restart()
    site.run_until(lambda: site.ask("drains")["drains"][0]["phase"] != "running", before=600)
    (drain,) = site.ask("drains")["drains"]
    outcomes = Counter(str(act[3]) for act in acts(site))
    site.service.close()
    assert drain["phase"] == "empty"
    return [drain["phase"], drain["passes"], drain["files_moved"], outcomes]


def expired(folder: Path) -> Trace:
    """A staging whose deadline passes before its last move."""
    site = site_of(Cluster(recorded_test_bed()), folder, limits={"files_per_second": 0.2})
    for number in range(12):
        site.cluster.make_file(f"/proj/in/{number}", 100_000, uid=1001)
    site.ask("stage", job="17", uid=1001, gid=100, user="alice", stages=[
        {"direction": "promote", "path": "/mnt/lustre/proj/in", "deadline_seconds": 12.0}])
    site.run(until=30)
    (found,) = site.ask("stage-state", job="17")["stagings"]
    site.service.close()
    assert (found["state"], found["succeeded"]) == ("expired", False)
    return [found["outcomes"], sum(found["left_out"].values()), found["files"]]


@pytest.mark.parametrize("scenario", [neighbour, opted_out, striped, restored, drained, expired],
                         ids=lambda scenario: scenario.__name__)
def test_behaviour_is_the_same_without_sentences(tmp_path: Path, scenario: Callable[[Path], Trace]) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "coded").mkdir()
    plain = scenario(tmp_path / "plain")
    with opaque_sentences():
        coded = scenario(tmp_path / "coded")
    assert coded == plain
