"""Tables of requests that lost a part. Whole ones of all releases are in the tests of the exporter."""

from __future__ import annotations

import pytest

from lustre.formats import rpc_stats
from tests.conftest import Unpack

OF_TARGET = "sys/kernel/debug/lustre/osc/lustre-OST0002-osc-ff1100011d6c9800/rpc_stats"


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
