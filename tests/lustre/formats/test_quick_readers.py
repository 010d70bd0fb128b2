"""The quick readers say what the full parsers say: of recordings, of what follows on them, and of anything spoilt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import import_, job_stats
from lustre.formats.import_ import Brief, BriefReader, Import
from lustre.formats.job_reader import Usual, usual
from lustre.formats.job_stats import Job
from tests.spoilt import any_text, damage, renumbered, renumbering, spoilt, texts

Unpack = Callable[[str], Path]
TREES = [f"2.17.57/tree-{name}" for name in ("idle", "load-1", "load-2")]


def brief(link: Import) -> Brief:
    return Brief(*[getattr(link, name) for name in Brief._fields])


@pytest.mark.parametrize("tree", TREES)
def test_recordings_of_imports(capture: Unpack, tree: str) -> None:
    briefs = BriefReader()
    for _ in range(2):
        for text in texts(capture(tree), "import"):
            assert briefs.read(text) == brief(import_.parse(text))
    assert len(briefs._skipped) > 0


@any_text
@given(st.integers(0, 99), st.lists(damage, max_size=2), st.integers(0, 5000))
def test_imports_that_follow_are_read_as_if_they_were_the_first(capture, which, damages, cut) -> None:
    known = texts(capture(TREES[1]), "import")
    briefs = BriefReader()
    text = known[which % len(known)]
    briefs.read(text)
    for changed in (text.replace(b"usecs", b"0 usecs"), text[: cut % (len(text) + 1)]):
        assert briefs.read(changed)[:5] == brief(import_.parse(changed))[:5]
    for where, what, length in damages:
        text = spoilt(text, where, what, length)
        assert briefs.read(text)[:5] == brief(import_.parse(text))[:5]


def without_zeros(job: Job) -> Job:
    """The job as if the kernel did not print counters at zero."""
    kept = [i for i, samples in enumerate(job.samples) if int(samples)]
    names, samples, units, sums, maxima = (
        tuple([column[i] for i in kept]) for column in (job.names, job.samples, job.units, job.sums, job.maxima)
    )
    return Job(job.job_id, job.start_time, job.snapshot_time, names, samples, units, sums, maxima, job.histograms, 0)


def agree(found: Usual, job: Job) -> None:
    assert job.skipped == 0
    shown = without_zeros(job)
    rows = list(zip(shown.names, shown.samples, shown.units, shown.sums, strict=True))
    assert (found.job_id, found.start_time) == (shown.job_id, shown.start_time)
    assert [(b"%b_bytes" % kind, total) for kind, total, _ in found.of_bytes] == [
        (name, total) for name, _, unit, total in rows if unit == b"bytes"
    ]
    assert [*zip(found.names, found.samples, found.sums, strict=True)] == [
        (name, samples, total) for name, samples, unit, total in rows if unit == b"usecs"
    ]
    read = [(b"%b_bytes" % kind, job_stats.buckets(hist)) for kind, _, hist in found.of_bytes if b":" in hist]
    assert tuple(read) == shown.histograms


@pytest.mark.parametrize("tree", TREES)
def test_recorded_jobs(capture: Unpack, tree: str) -> None:
    quick = 0
    for text in texts(capture(tree), "job_stats"):
        for block in job_stats.split(text):
            found = usual(block)
            if found is not None:
                quick += 1
                agree(found, job_stats.parse_block(block))
                assert job_stats.active_at(block) == int(job_stats.parse_block(block).snapshot_time.partition(b".")[0])
    assert quick > 0 or tree.endswith("idle")


@any_text
@given(st.integers(0, 9999), st.lists(damage, max_size=2), renumbering, st.integers(1, 9))
def test_spoilt_jobs_are_left_to_the_full_parser_or_read_alike(capture, which, damages, numbers, every) -> None:
    known = [block for text in texts(capture(TREES[1]), "job_stats")[:2] for block in job_stats.split(text)]
    block = renumbered(known[which % len(known)], numbers, every)
    for text in (block, *(spoilt(block, *one) for one in damages)):
        whole = job_stats.split(text)
        if len(whole) == 1 and (found := usual(whole[0])) is not None:
            agree(found, job_stats.parse_block(whole[0]))


def test_a_block_of_many_odd_lines_is_no_work() -> None:
    head = b"- job_id:          a\n  snapshot_time:   9.5 s\n  start_time:      5.5 s\n  elapsed_time:    4.0 s\n"
    zero = b"  op: { samples: 0, unit: usecs, min: 0, max: 0, sum: 0, sumsq: 0 }\n"
    assert usual(head + 20000 * (b"?\n" + zero)) is None
    assert usual(head + 20000 * zero) == Usual(b"a", b"5.5", (), (), (), ())
