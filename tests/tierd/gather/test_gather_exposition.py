"""Expositions of nodes: what is read of them, and what is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.damaged import any_text
from tests.rules import every
from tierd.gather.exposition import Layouts

GOOD = b"""\
# HELP lustre_osc_read_bytes_total Bytes read.
# TYPE lustre_osc_read_bytes_total counter
lustre_osc_read_bytes_total{fs="a",mount="/a b",pool="x"} 17
# TYPE lustre_h histogram
lustre_h_bucket{fs="a",le="1.0"} 2
lustre_h_bucket{fs="a",le="+Inf"} 5
lustre_h_sum{fs="a"} 1.5
lustre_h_count{fs="a"} 5
# TYPE go_threads gauge
go_threads 7
process_start_time_seconds 1.7e+09
"""
BAD = {
    "cut short": GOOD[:-1],
    "a time": b'# TYPE lustre_a gauge\nlustre_a{x="1"} 5 1700000000\n',
    "twice": GOOD + b'lustre_osc_read_bytes_total{fs="a",mount="/a b",pool="x"} 18\n',
    "another program": b"go_threads 7\n",
    "no number": b"# TYPE lustre_a counter\nlustre_a 5x\n",
    "negative": b"# TYPE lustre_a counter\nlustre_a -5\n",
    "NaN": b"# TYPE lustre_a counter\nlustre_a NaN\n",
    "infinite": b"# TYPE lustre_a counter\nlustre_a +Inf\n",
    "not cumulative": b'# TYPE lustre_h histogram\nlustre_h_bucket{le="1.0"} 5\nlustre_h_bucket{le="+Inf"} 2\n',
    "no +Inf": b'# TYPE lustre_h histogram\nlustre_h_bucket{le="1.0"} 5\n',
    "no labels": b'# TYPE lustre_a counter\nlustre_a{x=1} 5\n',
    "two types": b"# TYPE lustre_a counter\n# TYPE lustre_a gauge\nlustre_a 5\n",
    "no key": b"# TYPE lustre_a counter\nlustre_a 1\n5\n",
    "html": b"<html>\n",
}  # fmt: skip


def test_a_good_one() -> None:
    found = Layouts().parse(GOOD)
    assert found.counters == (17, 1.5, 2, 3)
    assert found.start == 1.7e9
    assert found.layout.counter_slots[0].labels == b'fs="a",mount="/a b",pool="x"'
    assert found.layout.counter_slots[0].by_job


@every("name", BAD)
def test_bad_ones_are_refused(name) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Layouts().parse(BAD[name])


def test_a_bad_value_is_refused_in_a_known_layout_too() -> None:
    layouts = Layouts()
    known = layouts.parse(GOOD).layout
    with pytest.raises(ValueError, match="impossible value"):
        layouts.parse(GOOD.replace(b" 17\n", b" -17\n"), known)


def test_nodes_share_layouts_and_unused_ones_are_forgotten() -> None:
    layouts = Layouts()
    first, second = layouts.parse(GOOD).layout, layouts.parse(GOOD.replace(b" 17\n", b" 18\n")).layout
    assert first is second
    layouts.keep([])
    assert layouts.parse(GOOD).layout is not first


@any_text
@given(st.binary())
def test_any_bytes_are_read_or_refused(data) -> None:
    with suppress(ValueError):
        Layouts().parse(GOOD + data)
