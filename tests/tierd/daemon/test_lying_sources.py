"""Sources with wrong values, in virtual time: tierd does nothing unsafe, and reports the error."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

from lustre.changelog.record import Record
from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.settings import ExporterLoad, recorded_test_bed
from tests.conftest import Unpack
from tests.tierd.simulated import NOISE, STREAM, World, world
from tests.tierd.site import Clearing, Site, acting, altered
from tierd.model import Window
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.counters import JobEntry
from tierd.sense.freshness import CheckedReadings
from tierd.sense.parameters import why_jobs_are_unnamed
from tierd.sense.readings import Reading
from tierd.sense.sources import LiveSource
from tierd.simulation.world import VirtualClock, parameter_files

Lie = Callable[[Reading, int], Reading]


@dataclass
class Lying:
    """Gives true readings until a time, then wrong ones; behind the plausibility checks, as in the service."""

    near: LiveSource
    clock: VirtualClock
    lie: Lie | None = None
    count: int = 0
    guard: CheckedReadings = field(init=False)

    def __post_init__(self) -> None:
        self.guard = CheckedReadings("exporters", self._read, self.clock, 90.0, 30.0)

    def _read(self) -> Reading:
        truth = self.near.reading()
        self.count += 1
        return self.lie(truth, self.count) if self.lie else truth

    def reading(self) -> Reading:
        return self.guard()

    def records(self) -> Iterable[Sequence[Record] | Tally]:
        return self.near.records()


def lied_to(tmp_path: Path, *jobs: object, model: type[Cluster] = FluidCluster,
            dry_run: bool = False) -> tuple[World, Lying]:
    at = world(tmp_path, jobs=jobs, hook=Lying, model=model, dry_run=dry_run)  # type: ignore[arg-type]
    source = at.source
    assert isinstance(source, Lying)
    return at, source


def times(factor: float) -> Callable[[JobEntry], JobEntry]:
    return lambda c: JobEntry({name: count * factor for name, count in c.samples.items()},
                                 {name: total * factor for name, total in c.sums.items()},
                                 {upper: count * factor for upper, count in c.sizes.items()}, c.start)


def changed(reading: Reading, how: Callable[[JobEntry], JobEntry], where: str = "") -> Reading:
    return replace(reading, jobs={key: how(c) if where in key[0] else c for key, c in reading.jobs.items()})


HOSTILE = '"};\x1b[31m\n$(id)'
LIES: dict[str, Lie] = {
    "one target resets": lambda r, n: changed(r, times(0.0), "OST0003") if n % 2 else r,
    "jumps to huge numbers": lambda r, n: changed(r, times(1e12)) if n % 3 == 0 else r,
    "one target is a thousand times as busy": lambda r, n: changed(r, times(1000.0), "OST0002"),
    "jobs come and go": lambda r, n: replace(r, jobs={} if n % 2 else r.jobs),
    "half of the targets": lambda r, n: replace(r, targets=frozenset(sorted(r.targets)[::2])),
    "no targets": lambda r, n: replace(r, targets=frozenset(), jobs={}),
    "the same moment for ever": lambda r, n: replace(r, time=r.time - n * 5.0),
    "yesterday": lambda r, n: replace(r, time=r.time - 86400.0),
    "tomorrow": lambda r, n: replace(r, time=r.time + 86400.0),
    "time to and fro": lambda r, n: replace(r, time=r.time - 40.0 * (n % 2)),
    "names that attack": lambda r, n: replace(r, jobs={(t, j + HOSTILE): c for (t, j), c in r.jobs.items()}),
    "all targets ill": lambda r, n: replace(r, conditions=dict.fromkeys(r.targets, "in recovery")),
}
LIES |= {
    "one target has no numbers": lambda r, n: changed(r, times(math.nan), "OST0003"),
    "infinite": lambda r, n: changed(r, times(math.inf)),
    "huge names": lambda r, n: replace(r, jobs={(t, j + "x" * 100_000): c for (t, j), c in r.jobs.items()}),
}
NONSENSE = "implausible counters"
RENAMED = "most job IDs changed since the last reading"
EXPLAINED = {
    "all targets ill": "in recovery; tierd finds nothing there",
    "half of the targets": "no new counters; tierd finds nothing there",
    "jobs come and go": RENAMED,
    "infinite": NONSENSE, "one target resets": NONSENSE, "one target has no numbers": NONSENSE,
    "jumps to huge numbers": NONSENSE, "one target is a thousand times as busy": "FOUND imbalance",
    "huge names": RENAMED, "names that attack": RENAMED,
}
"""Messages about wrong values that do not make tierd blind."""
REPORTED = {"no targets": "no target is seen", "yesterday": "stale",
        "the same moment for ever": "older than the samples before|stale", "tomorrow": "ahead of this node's clock",
        "time to and fro": "older than the samples before"}


@pytest.mark.parametrize("name", sorted(LIES))
def test_no_lie_about_a_quiet_system_makes_tierd_act(tmp_path: Path, name: str) -> None:
    at, source = lied_to(tmp_path, STREAM)
    at.run(until=60)
    source.lie = LIES[name]
    at.run(until=120)
    source.lie = None
    at.run(until=160)
    assert list(at.journal.entries()) == []
    if name in REPORTED:
        assert any(word in " ".join(at.said) for word in REPORTED[name].split("|"))
    assert not any("\x1b" in sentence or "\n" in sentence for sentence in at.said)


def test_a_default_layout_is_undone_before_flash_is_full_even_without_counters(tmp_path: Path) -> None:
    """The noise keeps its files. What was set fills the pool whether tierd sees or not."""
    at, source = lied_to(tmp_path, STREAM, replace(NOISE, keep=100_000, files_per_second=20.0))
    at.run(until=60)
    assert any(sentence.startswith("SET default layout") for sentence in at.said)
    source.lie = LIES["no targets"]
    at.run_until_said("UNDONE default layout of /proj/ingest: pool 'flash' is down to its reserve", before=240)


@pytest.mark.parametrize("since", [28, 47, 52])
@pytest.mark.parametrize("name", sorted(LIES))
def test_a_lying_source_with_a_neighbour_causes_no_unsafe_act_and_is_explained(tmp_path: Path, name: str,
                                                                               since: int) -> None:
    """It begins before the noise (30 s), just before what is done about it (50 s), and just after; the verdict would
    come at 80 s."""
    # as flows, a stream alone has too few counters for their absence to be reported
    single = since < 30 and EXPLAINED.get(name) == RENAMED
    at, source = lied_to(tmp_path, STREAM, NOISE, model=Cluster if single else FluidCluster)
    at.run(until=since)
    source.lie = LIES[name]
    at.run(until=105 if EXPLAINED.get(name) == "FOUND imbalance" else 100)  # an imbalance lasts before it is found
    reported = " ".join(at.said)
    for entry in at.journal.entries():
        assert (entry.kind, entry.place) == ("set-default-layout", NOISE.directory)
        assert entry.layout_after.components[0].pool == "flash"
        assert (entry.layout_after.components[0].extent_end or 0) >= 1 << 20, "the whole small file"
        assert "FOUND noisy-neighbour" in reported
        assert "because new files of mdt_small.1001 load the disks" in reported
        assert entry.outcome == "done", "no wrong value undoes an act that helps"
    assert any(words in reported for words in (EXPLAINED.get(name) or REPORTED[name]).split("|"))
    if name in REPORTED:
        assert source.guard.age.stale
        assert any(sentence.startswith("blind: exporters: ") for sentence in at.said)
        assert since > 28 or list(at.journal.entries()) == []
    parts = at.journal.judgements.won_back("noisy-neighbour", "flash", 1 << 20)
    assert all(part <= 8.0 for part in parts), "nothing absurd"
    assert len(reported) < 100_000


def test_uneven_readings_do_not_end_a_finding(tmp_path: Path) -> None:
    """They are early or late: the time that they give is not that of their counters."""
    at, source = lied_to(tmp_path, STREAM, NOISE, dry_run=True)
    rng = Random(2)
    source.lie = lambda r, _: replace(r, time=r.time + (rng.uniform(-2.0, 2.0) if rng.random() < 0.4 else 0.0))
    at.run(until=150)
    assert sum(words.startswith("FOUND noisy-neighbour") for words in at.said) == 1
    assert not any(words.startswith("ended") for words in at.said)
    at.cluster.stop(NOISE.job_id)
    at.run(until=190)
    assert any(words.startswith("ended") for words in at.said)


def test_a_name_no_kernel_gives_is_nobodys(tmp_path: Path) -> None:
    at, source = lied_to(tmp_path, STREAM, NOISE)
    source.lie = LIES["huge names"]
    at.run(until=90)
    assert list(at.journal.entries()) == []
    assert NONSENSE in " ".join(at.said)
    assert max(map(len, at.said)) < 1000


# Exporters of loaded servers: late, lost and doubled answers. Rates stay what they were, and the verdict is true


PROMPT = 4.0
LOADS = {
    "late within a cycle": ExporterLoad(1.0, PROMPT),
    "later than a cycle": ExporterLoad(1.0, 9.0),
    "lost": ExporterLoad(1.0, PROMPT, lost_share=0.3),
    "doubled": ExporterLoad(1.0, PROMPT, doubled_share=0.3),
    "all of it": ExporterLoad(0.5, 8.0, lost_share=0.15, doubled_share=0.15),
}


def loaded(tmp_path: Path, load: ExporterLoad, jobs: Sequence[object] = (STREAM, NOISE)) -> World:
    at = world(tmp_path, jobs=jobs, model=FluidCluster)  # type: ignore[arg-type]
    at.cluster.exporter_load = load
    return at


@pytest.mark.parametrize("name", sorted(LOADS))
def test_no_rate_above_the_truth_and_a_true_verdict(tmp_path: Path, name: str) -> None:
    at = loaded(tmp_path, LOADS[name])
    windows: dict[float, Window] = {}
    while at.cluster.now < 240:
        at.run(at.cluster.now + 5)
        windows.update({seen.end: seen for seen in at.daemon.windows if seen.seconds < 25})
    alone = at.rate(STREAM.job_id, 5, NOISE.start_seconds) * 1e6
    rates = [rate for seen in windows.values() if (rate := seen.moved.get(STREAM.job_id))]
    assert len(rates) > 15
    assert max(rates) <= 1.1 * alone
    assert any("FOUND noisy-neighbour" in sentence for sentence in at.said)
    (judged,) = [case.judgement for case in at.daemon.store if case.judgement is not None]
    after = at.rate(STREAM.job_id, 120, 200) * 1e6
    assert judged.verdict == "helped"
    assert judged.after == pytest.approx(after, rel=0.1)


def without(target: str) -> Callable[[Reading, int], Reading]:
    """As while the exporter of one server does not answer."""
    return lambda reading, _: replace(
        reading, targets=frozenset(each for each in reading.targets if not each.endswith(target)),
        jobs={key: counters for key, counters in reading.jobs.items() if not key[0].endswith(target)})


def test_nothing_is_found_about_a_stream_that_uses_a_target_which_is_not_seen(tmp_path: Path) -> None:
    at, source = lied_to(tmp_path, STREAM, NOISE)
    at.run(until=28)
    source.lie = without("OST0003")
    at.run(until=100)
    assert not any("FOUND" in sentence for sentence in at.said)
    assert list(at.journal.entries()) == []
    assert any("OST0003: no new counters; tierd finds nothing there" in sentence for sentence in at.said)
    assert not any(sentence.startswith("blind") for sentence in at.said)
    assert "without lustre-OST0003, not seen since" in source.guard.age.state
    source.lie = None
    at.run(until=240)
    assert any("FOUND" in sentence for sentence in at.said)


def test_a_finding_is_held_while_a_target_of_its_stream_is_not_seen(tmp_path: Path) -> None:
    at, source = lied_to(tmp_path, STREAM, NOISE)
    at.run_until_said("FOUND noisy-neighbour", before=100)
    source.lie = without("OST0003")
    at.run(at.cluster.now + 60)
    assert [(each.kind, each.held) for each in at.daemon.findings] == [("noisy-neighbour", True)]
    assert not any(sentence.startswith("ended") for sentence in at.said)
    source.lie = LIES["no targets"]
    at.run(at.cluster.now + 5)
    assert (len(at.daemon.findings), at.daemon.may_begin) == (1, False), "no act rests on what was seen before"


# Jobs without names and metadata servers without exporters: neither is an error, and both hide findings


def disabled(folder: Path) -> Tree:
    """A client on which ``jobid_var`` was never set: the file as the kernel prints it."""
    (folder / "sys/fs/lustre").mkdir(parents=True)
    (folder / "sys/fs/lustre/jobid_var").write_text("disable\n")
    return Tree(Roots.of(folder / "proc", folder / "sys"))


def test_a_client_that_names_jobs_is_no_reason(capture: Unpack, tmp_path: Path) -> None:
    root = capture("2.17.57/tree-idle")
    assert why_jobs_are_unnamed(Tree(Roots.of(root / "proc", root / "sys"))) == ""
    assert why_jobs_are_unnamed(Tree(Roots.of(tmp_path / "proc", tmp_path / "sys"))) == ""
    assert "lctl set_param -P jobid_var=procname_uid" in why_jobs_are_unnamed(disabled(tmp_path))


@pytest.mark.parametrize("named", [False, True])
def test_jobs_without_names_are_reported_where_nothing_is_counted(tmp_path: Path, named: bool) -> None:
    cluster = Cluster(recorded_test_bed(), (STREAM,))
    tree, read = disabled(tmp_path / "client"), parameter_files(cluster, tmp_path / "node")
    site = Site(cluster, Clearing(cluster), altered(acting(tmp_path), act={"dry_run": True}), tmp_path, parts={
        "read": lambda: read() if named else replace(read(), jobs={}), "unnamed": lambda: why_jobs_are_unnamed(tree)})
    site.start()
    site.run(until=15)
    site.service.close()
    assert sum("jobid_var is 'disable'" in words for words in site.said) == (not named), site.said
    assert site.filesystem.cleared == {}, "a dry run clears nothing"


def test_a_view_without_metadata_servers_is_reported(tmp_path: Path) -> None:
    def osts_alone(reading: Reading, _: int) -> Reading:
        osts = frozenset(target for target in reading.targets if "-OST" in target)
        return replace(reading, targets=osts, jobs={key: c for key, c in reading.jobs.items() if key[0] in osts})

    for lie in (None, osts_alone):
        (folder := tmp_path / str(lie is None)).mkdir()
        at, source = lied_to(folder, STREAM)
        source.lie = lie
        at.run(until=20)
        assert ("no metadata target is seen" in at.daemon.faults.get("metadata", "")) == (lie is not None)


class Scraped(LiveSource):
    """Gives the reading of each third cycle again in the two after it, as Prometheus does between scrapes."""

    def __init__(self, near: LiveSource, _: object) -> None:
        self._near, self._asked = near, 0
        self.follower = near.follower

    def reading(self) -> Reading:
        if self._asked % 3 == 0:
            self._last = self._near.reading()
        self._asked += 1
        return self._last

    def records(self) -> Iterable[Sequence[Record] | Tally]:
        return self._near.records()


def test_nothing_begins_before_two_scrapes_of_prometheus_have_been_compared(tmp_path: Path) -> None:
    """What is degraded, and where streams run, is known from then on."""
    at = world(tmp_path, (STREAM,), hook=Scraped)
    began: list[bool] = []
    for _ in range(6):
        at.run(at.cluster.now + 5)
        began.append(at.daemon.may_begin)
    assert began == [False] * 3 + [True] * 3
