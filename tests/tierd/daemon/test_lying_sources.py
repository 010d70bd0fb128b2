"""Sources with wrong values, in virtual time: tierd does nothing unsafe, and reports the error."""

import math
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.scenarios.events import Event, schedule
from simulator.settings import ExporterLoad, recorded_test_bed
from tests.conftest import Unpack
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE, STREAM, Faulty, World, world
from tests.tierd.site import Clearing, Site, acting, altered
from tests.tierd.worlds import TARGETS
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.model import Window
from tierd.sense.changelogs.tallies import Tally
from tierd.sense.counters import JobEntry
from tierd.sense.freshness import CheckedReadings
from tierd.sense.parameters import why_jobs_are_unnamed
from tierd.sense.readings import IMPLAUSIBLE, Reading, window
from tierd.sense.sources import LiveSource
from tierd.simulation.world import VirtualClock, parameter_files, wire

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


# A neighbour with a hostile name in a hostile place, or whose records are lost: acted on safely, and explained


EVIL = [("<script>\x1b[2J\"};$(id).7", "/proj/<script>alert(1)</script>\x1b[31m'\n$(id)"), ("-rf.7", "/proj/-rf"),
        ("a b:c,{d}\n.7", "/proj/\udcff\udcfe"), ("../../etc.7", "/proj/.. ")]


@pytest.mark.parametrize(("job", "directory"), EVIL, ids=["terminal and page", "option", "bytes", "path"])
def test_a_name_does_no_harm_from_the_finding_to_the_verdict(site: Site, job: str, directory: str) -> None:
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, replace(NOISE, job_id=job, directory=directory))))
    sentences = []
    while site.cluster.now < 130:
        site.cluster.advance(5)
        sentences.append(site.service.cycle())
    (entry,) = site.service.journal.entries()
    assert (entry.place, entry.outcome) == (directory, "done")
    assert all(sentence.isprintable() for sentence in (*site.said, *sentences))
    for command in (["status"], ["findings"], ["top"], ["plan"], ["history", "--long"], ["explain", "F1"], ["advise"]):
        printed = site.shown(*command)
        assert all(line.isprintable() for line in printed.splitlines()), command
    assert "it helped" in site.shown("explain", "F1")
    assert "<script>alert" not in site.fetched("/")[1]
    metrics = site.fetched("/metrics")[1]
    assert "<script>alert" not in metrics
    assert len(list(text_string_to_metric_families(metrics))) > 30
    assert site.ask("undo", id=1)["result"] == "undone"


def test_a_finding_about_a_directory_whose_name_is_not_text_ends_nothing(site: Site) -> None:
    """The journal could not store it, which ended tierd, and again after each start."""
    place = "/proj/\udcff\x1b[2J\n<x>"
    layout = Layout((Component(0, 128 << 10, "flash"), Component(128 << 10, None, "hdd")))
    site.settings = replace(site.settings, act=replace(site.settings.act, mode=Mode.ASK, on=("outgrown-component",)))
    site.begin_again(FluidCluster(recorded_test_bed(), (
        replace(NOISE, directory=place, layout=layout, start_seconds=0.0),)))
    site.run_until_said("FOUND outgrown-component", before=100)
    site.run_until_said("waits for approval", before=120)
    for command in (["status"], ["findings"], ["plan"], ["explain", "F1"], ["report"]):
        printed = site.shown(*command)
        assert all(line.isprintable() for line in printed.splitlines()), command
    for path in ("/", "/case/F1", "/history", "/metrics"):
        status, page = site.fetched(path)
        assert (status, "\x1b" in page, "<x>" in page) == (200, False, path == "/metrics"), path
    site.restart()
    assert site.ask("explain", id="F1")["case"]["subject"] == place
    site.run_until_said("waits for approval", before=220)
    site.shown("apply", "F2")
    site.run_until_said("SET", before=240)


# Readings with all kinds of wrong values: the loop continues, does nothing unsafe, and reports unusable values


JOBS = ("ior.1", "untar.2", "x" * 300, "a b\n\x1b[2J", "", "naïve\udcff.3", "../../etc")
NUMBERS = st.one_of(st.integers(0, 10**6).map(float), st.sampled_from(
    [math.nan, math.inf, -math.inf, -1.0, 1e308, 2.0**64, 0.0]))
COUNTERS = st.builds(
    JobEntry,
    st.dictionaries(st.sampled_from(["read", "write", "read_bytes", "write_bytes", "sync", "open", "close", "mknod"]),
                    NUMBERS),
    st.dictionaries(st.sampled_from(["read", "write", "read_bytes", "write_bytes"]), NUMBERS),
    st.dictionaries(st.sampled_from([4096, 1 << 20]), NUMBERS),
    st.sampled_from(["", "1", "nan", "1795000000", "soon", "9" * 40]))
PAIRS = st.tuples(st.sampled_from([*TARGETS, "lustre-MDT0000", "lustre-OST" + "f" * 90]), st.sampled_from(JOBS))
READINGS = st.tuples(
    st.sampled_from([5.0, 5.0, 5.0, 0.0, -3600.0, 1e9, math.nan]),
    st.dictionaries(PAIRS, COUNTERS, max_size=12), st.frozensets(st.sampled_from(TARGETS)),
    st.dictionaries(st.sampled_from(TARGETS), st.sampled_from(["full", "degraded"]), max_size=2))
RECORDS = st.builds(
    lambda index, kind, target, parent, name, job: Record(
        index, kind, 1795000000.0, 0, target, parent, name, job_id=job),
    st.integers(0, 2**63), st.sampled_from(list(RecordType)), st.builds(Fid, st.integers(0, 2**64 - 1),
                                                                        st.integers(0, 2**32 - 1)),
    st.builds(Fid, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)), st.binary(max_size=255),
    st.sampled_from([job.encode("utf-8", "surrogateescape")[:64] for job in JOBS]))


class Liar(LiveSource):
    """A source that returns given readings, or fails."""

    def __init__(self, now: float, readings: Sequence[object], records: Sequence[Record]) -> None:
        self._time = now
        self._readings: Iterator[object] = iter(readings)
        self._records = records

    def reading(self) -> Reading:
        reported = next(self._readings)
        if reported is None:
            raise ConnectionRefusedError("refused")
        assert isinstance(reported, tuple)
        step, jobs, targets, conditions = reported
        self._time += step
        return Reading(self._time, jobs, frozenset(targets) | {target for target, _ in jobs}, conditions)

    def records(self) -> Iterator[Sequence[Record]]:
        yield self._records


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(READINGS, st.none()), min_size=2, max_size=12), st.lists(RECORDS, max_size=10))
def test_the_loop_survives_any_reading_and_changes_nothing(readings: list[object], records: list[Record]) -> None:
    said = logged()
    cluster = Cluster(recorded_test_bed(), ())
    with tempfile.TemporaryDirectory() as folder:
        at = wire(cluster, Settings(), Path(folder), hook=lambda _, clock: Liar(clock.now(), readings, records))
        for reported in readings:
            at.daemon.cycle(0)
            if reported is None:
                assert any(words.startswith("blind: ") for words in at.daemon.faults.values())
        assert list(at.journal.entries()) == []
        assert all(line.isprintable() for text in said for line in text.splitlines())
        at.journal.close()


@given(st.dictionaries(PAIRS, COUNTERS, max_size=12), st.dictionaries(PAIRS, COUNTERS, max_size=12))
def test_a_window_holds_numbers_or_names_those_that_make_no_sense(
        before: dict[tuple[str, str], JobEntry], after: dict[tuple[str, str], JobEntry]) -> None:
    targets = frozenset(target for target, _ in (*before, *after))
    seen = window(Reading(0.0, before, targets), Reading(5.0, after, targets))
    for load in seen.loads.values():
        assert math.isfinite(load.moved_bytes)
        assert math.isfinite(load.operations)
        assert load.moved_bytes >= 0 <= load.operations
    for names in seen.namespace.values():
        assert math.isfinite(names.operations)
    assert set(seen.conditions.values()) <= {IMPLAUSIBLE}


# Faults of a simulated cluster, as tierd sees them in parameter files, changelogs and the port


@pytest.mark.parametrize("model", [Cluster, FluidCluster], ids=["events", "flows"])
@pytest.mark.parametrize(("name", "says"), [("degraded", "is degraded"), ("recovery", "is in recovery")])
def test_a_target_that_is_not_well_takes_no_files(tmp_path: Path, model: type[Cluster], name: str, says: str) -> None:
    """Moves onto one in recovery waited for it, failed, and opened the circuit breaker."""
    at = world(tmp_path, model=model)
    schedule([Event(10, name, {"target": "OST0003", **({"seconds": 60} if name == "recovery" else {})})], at.cluster)
    at.run(20)
    assert at.gate.queue.closed == {"lustre-OST0003": says}


@pytest.mark.parametrize("seconds", [7200.0, -7200.0, -60.0])
def test_after_a_clock_was_set_a_neighbour_is_found_by_what_was_seen_before(tmp_path: Path, seconds: float) -> None:
    """What a stream gets alone does not change with the clock."""
    for begins in (30.0, 45.0):
        (folder := tmp_path / str(begins)).mkdir()
        at = world(folder, (STREAM, replace(NOISE, start_seconds=begins)))
        schedule([Event(20, "clock_jump", {"seconds": seconds})], at.cluster)
        first = at.run_until_said("FOUND", before=begins + 150)
        (reported,) = [words for words in at.said if "tierd may have to learn baselines again" in words]
        assert reported.startswith("7205 s passed between two readings" if seconds > 0 else "the clock went back by ")
        assert f"since {NOISE.job_id} started" in first


def test_a_clock_that_was_set_ahead_shows_no_loss(tmp_path: Path) -> None:
    """What was done in 5 s was compared with hours, and the stream seemed to have lost a tenth since."""
    at = world(tmp_path, (STREAM, replace(NOISE, start_seconds=0.0, files_per_second=2.0)))
    schedule([Event(60, "clock_jump", {"seconds": 7200.0})], at.cluster)
    at.run(120)
    assert not any("FOUND" in words for words in at.said)


def test_an_act_before_the_clock_was_set_back_is_judged(tmp_path: Path) -> None:
    at = world(tmp_path)
    at.run_until_said("SET ", before=100)
    at.cluster.epoch_ns -= 86400 * 10**9
    at.run(at.cluster.now + 200)
    assert any(words.startswith("KEPT: the effect cannot be judged: what the stream lost, or has regained, ")
               for words in at.said), "nothing before the act can be compared"


def test_an_act_whose_effect_nobody_saw_is_not_said_to_be_of_a_job_that_ended(tmp_path: Path) -> None:
    sources: list[Faulty] = []

    def hook(near: LiveSource, _: object) -> LiveSource:
        sources.append(Faulty(near))
        return sources[0]

    at = world(tmp_path, hook=hook)
    at.run_until_said("SET ", before=100)
    sources[0].fault = OSError("no exporter answers")
    at.run(at.cluster.now + 300)
    sources[0].fault = None
    assert "or not seen. " in at.run_until_said("KEPT: the effect cannot be judged", before=450)


def test_late_readings_are_no_clock_that_was_set_back(tmp_path: Path) -> None:
    """Samples of Prometheus are some time old, and tierd acts with its own clock."""
    past = deque[Reading](maxlen=17)

    class Late(LiveSource):
        def reading(self) -> Reading:
            past.append(super().reading())
            return past[0]

    at = world(tmp_path, hook=lambda near, _: Late(near.reading, near.follower))
    at.run_until_said("SET ", before=300)
    assert past[-1].time - past[0].time == pytest.approx(80, abs=1)
    at.run(at.cluster.now + 140)
    assert not any(words.startswith(("KEPT", "UNDOING")) for words in at.said), "it is too early"
    at.run(at.cluster.now + 100)
    assert any(words.startswith("KEPT: it helped") for words in at.said)
