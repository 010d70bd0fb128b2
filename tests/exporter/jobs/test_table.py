"""The table of jobs in C shows what the Python readers show, over any series of readings."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from exporter.collector import Context, Settings
from exporter.collectors.jobs import JobOptions
from exporter.connections import OscTotals
from exporter.exposition import MetricsPage
from exporter.jobs.lines import compiled_table
from tests.exporter.jobs.test_texts import block, line

if compiled_table is None:
    pytest.skip("the C module is not built", allow_module_level=True)

USUAL = [
    line("read_bytes", 3, 4096, "bytes", [("4K", 3)]), line("read", 3, 99, "usecs", []),
    line("write", 2, 12345678, "usecs", []), line("getattr", 0, 0, "usecs", []),
]  # fmt: skip
ODD = [line("read", 3, 2**63, "usecs", []), "  nonsense\n", line("read", 1, 1, "usecs", []) * 2, ""]
NAMES = ["a", "b", "c.1", '"c.1"', '"x\\x20y"', "\xe9", "lustre-exporter.0", *[f"job{number}" for number in range(300)]]
job = st.tuples(
    st.sampled_from(NAMES), st.integers(990, 1010), st.sampled_from(["", "read", "more"]),
    st.sampled_from([*ODD, *[""] * 8]),
)  # fmt: skip
many = st.integers(0, 300).map(lambda count: [(f"job{number}", 1000, "read", "") for number in range(count)])
reading = st.tuples(
    st.one_of(many, st.lists(job, max_size=12, unique_by=lambda one: one[0]), st.lists(job, max_size=6)),
    st.integers(1, 5000),  # size of the pieces
    st.sampled_from(["", "", "", "- job_id:          cut\n  snap", "cut"]),
    st.booleans(),  # whether the file breaks off
)


def text_of(jobs: list[tuple[str, int, str, str]], end: str) -> bytes:
    more = {"": "", "read": "".join(USUAL[:2]), "more": "".join(USUAL)}
    blocks = [block(more[counted], odd, job=name, active=active) for name, active, counted, odd in jobs]
    return b"job_stats:\n" + b"".join(blocks) + end.encode()


def options(idle_seconds: int, *, compiled: bool) -> JobOptions:
    chosen = Settings(frozenset(), jobs_idle_seconds=idle_seconds)
    context = Context(chosen, OscTotals(), lambda: 1005.0)
    return JobOptions(context) if compiled else JobOptions(context, None)


def shown(page: MetricsPage) -> dict[str, bytes]:
    return {family.name: b"".join(chunks) for family, chunks in page.chunks.items() if chunks}


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@example(3, [([], 1, "", False), ([("a", 991, "", ODD[0]), ("b", 994, "", ""), ("a", 990, "", "")], 1, "", False)])
@given(st.sampled_from([0, 3, 8]), st.lists(st.one_of(reading, st.just(None)), min_size=1, max_size=6))
def test_any_series_of_readings(idle_seconds, readings) -> None:
    targets = [options(idle_seconds, compiled=compiled).jobs("f", "OST0000") for compiled in (True, False)]
    last = readings[0] or ([], 10, "", False)
    for given_reading in readings:
        jobs, size, end, broken = last = given_reading or last  # None repeats the last one
        text = text_of(jobs, end)

        def read(take, text=text, size=size, broken=broken) -> bool:
            for begin in range(0, len(text), size):
                take(text[begin : begin + size])
                if broken:
                    return False
            return True

        pages = [MetricsPage(), MetricsPage()]
        skipped = [target.collect(read, page) for target, page in zip(targets, pages, strict=True)]
        assert skipped[0] == skipped[1]
        assert shown(pages[0]) == shown(pages[1])


def test_an_unchanged_file_reuses_its_lines_and_a_new_job_changes_one_group() -> None:
    target = options(0, compiled=True).jobs("f", "OST0000")
    jobs = [(f"job{number}", 1000, "more", "") for number in range(2000)]

    def collected(texts: bytes) -> MetricsPage:
        page = MetricsPage()
        target.collect(lambda take: take(texts) or True, page)
        return page

    first, again = collected(text_of(jobs, "")), collected(text_of(jobs, ""))
    assert (first.reused, again.reused) == (0, again.made)
    changed = collected(text_of([("new", 1000, "more", ""), *jobs], ""))
    assert changed.made - changed.reused <= 2
    one_less = collected(text_of(jobs, ""))
    assert one_less.made - one_less.reused <= 2
    assert shown(one_less) == shown(again)


def test_the_rest_of_two_groups_is_not_taken_for_a_whole_one() -> None:
    def collected(target, names: list[str]) -> MetricsPage:
        page = MetricsPage()
        target.collect(lambda take: take(text_of([(name, 1000, "more", "") for name in names], "")) or True, page)
        return page

    def new():
        return options(0, compiled=True).jobs("f", "OST0000")

    before = [f"before{number}" for number in range(15)]
    names = [name for number in range(600) if collected(new(), [*before, name := f"job{number}", "next"]).made == 1]
    target = new()
    assert collected(target, names[:512]).made == 2, "two groups of the largest size: no name ends a group"
    left = names[:100] + names[356:512]  # as many as one group has
    assert shown(collected(target, left)) == shown(collected(new(), left))
