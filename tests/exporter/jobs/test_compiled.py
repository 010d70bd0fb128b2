"""Jobs read and shown by what was compiled are the same as without, whatever a kernel or a fault may print."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.exposition import escape
from exporter.jobs.lines import NAMES
from exporter.jobs.numbers import NumbersReader
from exporter.jobs.statistics import OPERATIONS, invalid_sums, read_block, render
from exporter.jobs.statistics import numbers as numbers_of
from lustre.formats import compiled, job_stats
from tests.damaged import any_text, damage, damaged, renumbered, renumbering, texts
from tests.exporter.jobs.test_texts import block, counters

if not compiled.AVAILABLE:
    pytest.skip("the modules in C were not built: no compiler, or no Python.h", allow_module_level=True)

from exporter.jobs import _lines

TREE = "2.17.57/tree-load-1"
NODE = b'fs="100%",target="OST0000"'
IDS = st.one_of(
    st.sampled_from(["cp.0", '"4242:0:node1"', '"a\\x20b"', "a b", "ü", 'a"b', "a\\b", "", '"', "50%", '"a b"', '""']),
    st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=31),
)
COMPILED, PLAIN = NumbersReader(), NumbersReader(None)


def same_numbers(text: bytes) -> None:
    """However they are read; what is not understood of counters at zero may go unnoticed where it is done quickly."""
    job = read_block(text)
    (start, keys, values, operations, whole), skipped = COMPILED.read(text)
    assert (start, keys, values, operations) == PLAIN.read(text)[0][:4]
    assert start == job.start_time
    assert dict(zip(keys, values, strict=True)) == dict(numbers_of(job))
    assert operations == sum([value for key, value in zip(keys, values, strict=True) if key[0] is OPERATIONS])
    assert 0 <= job.skipped + invalid_sums(job) - skipped <= text.count(b" samples:           0,")
    assert whole or job.skipped


def same_or_none(text: bytes) -> bool:
    same_numbers(text)
    found = _lines.lines(text, NODE, NAMES)
    if found is None:
        return False
    name, chunks = found
    job = read_block(text)
    assert name == escape(job.job_id)
    shown, skipped = render(job, b'%b,jobid="%b"' % (NODE, name))
    assert chunks == shown
    assert skipped <= text.count(b" samples:           0,")  # one listed twice, or of no unit
    return True


def test_alternating_jobs_may_have_other_counters_or_padding() -> None:
    zero = (
        "{ samples:           0, unit: usecs, min:        0, max:        0, sum:                0,"
        " sumsq:                  0 }\n"
    )
    used = "{ samples: 3, unit: usecs, min: 1, max: 9, sum: 12, sumsq: 90 }\n"
    names = ("read: ", "reads:      ", "setattr:    ", f"{'long' * 12}: ", "reas:       ", "sync:")
    for one in names * 2:
        for lines in ([one + used], [one + zero, *[other + used for other in names if other != one]]):
            assert same_or_none(block(*[f"  {line}" for line in lines]))


@settings(max_examples=300)
@given(st.lists(counters, max_size=9), IDS)
def test_jobs_of_any_counters(lines: list[str], job: str) -> None:
    same_or_none(block(*lines, job=job))


@any_text
@given(st.integers(0, 9999), st.lists(damage, max_size=2), renumbering, st.integers(1, 9), st.integers(0, 3000))
def test_damaged_recorded_jobs(capture, which, damages, numbers, every, cut) -> None:
    known = [one for text in texts(capture(TREE), "job_stats")[:2] for one in job_stats.split(text)]
    text = renumbered(known[which % len(known)], numbers, every)
    for changed in (text, text[:cut], *(damaged(text, *one) for one in damages)):
        if len(job_stats.split(changed)) == 1 and changed.endswith(b"\n"):
            same_or_none(changed)


@pytest.mark.parametrize("tree", ["tree-idle", "tree-load-1", "tree-load-2"])
def test_recorded_jobs_are_of_the_form_that_was_compiled(capture, tree) -> None:
    blocks = [one for text in texts(capture(f"2.17.57/{tree}"), "job_stats") for one in job_stats.split(text)]
    assert sum(map(same_or_none, blocks)) >= 0.9 * len(blocks)
    assert len([one for one in blocks if _lines.numbers(one)]) >= 0.9 * len(blocks)
