"""Tables of requests: the recorded ones, and older forms known from the source."""

from __future__ import annotations

import pytest

from lustre.formats import brw_stats, histogram, rpc_stats
from tests.conftest import Unpack

OF_TARGET = "sys/kernel/debug/lustre/osc/lustre-OST0002-osc-ff1100011d6c9800/rpc_stats"

# Written from the source: obd_mod_rpc_stats_seq_show at tag 2.10.0, all that mdc prints (nanoseconds blank-padded).
MDC_2_10 = b"""\
snapshot_time:         1500000000.      123 (secs.nsecs)
modify_RPCs_in_flight:  2

\t\t\tmodify
rpcs in flight        rpcs   % cum %
0:\t\t         0   0   0
1:\t\t         9  90  90
2:\t\t         1  10 100
"""

# Written from the source: lprocfs_stats_header at tag 2.15.0 puts the colon after the padding; brw_stats there.
BRW_2_15 = b"""\
snapshot_time            : 12345.000000001 secs.nsecs
start_time               : 45.000000001 secs.nsecs
elapsed_time             : 12300.000000000 secs.nsecs

                           read      |     write
pages per bulk r/w     rpcs  % cum % |  rpcs        % cum %

                           read      |     write
disk I/O size          ios   % cum % |  ios         % cum %
512K:\t\t         1  50  50   |    0   0   0
1M:\t\t         1  50 100   |    7 100 100
"""


def test_mdc_of_2_10() -> None:
    mdc = rpc_stats.parse(MDC_2_10)
    assert (mdc.modify_in_flight, mdc.read_in_flight, mdc.rpcs_in_flight, mdc.skipped) == (2, None, None, 0)
    assert mdc.modify_rpcs_in_flight == histogram.Histogram(b"rpcs in flight", (0, 1, 2), ((0, 9, 1),))


def test_brw_of_2_15() -> None:
    brw = brw_stats.parse(BRW_2_15)
    assert (brw.start_time, brw.skipped) == (b"45.000000001", 0)
    assert brw.named(b"disk I/O size") == histogram.Histogram(b"disk I/O size", (512 << 10, 1 << 20), ((1, 1), (0, 7)))
    assert brw.named(b"pages per bulk r/w") == histogram.Histogram(b"pages per bulk r/w", (), ((), ()))


@pytest.mark.parametrize("damage", [
    (b"434  19  82", b"434  19"),
    (b"434  19  82", b"43x4  19  82"),
    (b"|          2   0  22", b"           2   0  22"),
    (b"4:\t\t       434", b"4\t\t       434"),
    (b"4:\t\t       434", b"2:\t\t       434"),
    (b"1024:\t\t         9   0 100   |         35  16 100\n", b""),
])
def test_a_damaged_table_is_dropped_whole_and_alone(capture: Unpack, damage: tuple[bytes, bytes]) -> None:
    data = (capture("2.17.57/tree-load-2") / OF_TARGET).read_bytes()
    assert data.count(damage[0]) == 1
    osc = rpc_stats.parse(data.replace(*damage))
    assert osc.pages_per_rpc is None
    assert osc.rpcs_in_flight is not None
    assert osc.offset is not None
    assert osc.skipped >= 10
