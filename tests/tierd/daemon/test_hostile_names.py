"""A neighbour with a hostile name in a hostile place, or whose records are lost: acted on safely, and explained."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.settings import recorded_test_bed
from tests.tierd.logged import logged
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tests.tierd.worlds import TARGETS
from tierd.config.act import Mode
from tierd.config.settings import Settings
from tierd.sense.counters import JobEntry
from tierd.sense.readings import IMPLAUSIBLE, Reading, window
from tierd.sense.sources import LiveSource
from tierd.simulation.world import wire

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
