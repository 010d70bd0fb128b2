"""Parameter files as they may be found: real ones, broken ones, none."""

from pathlib import Path

import pytest

from lustre.parameters import Roots, Tree
from tests.conftest import Unpack
from tierd.sense import parameters

JOB_STATS = b"""\
job_stats:
- job_id:          dd.0
  snapshot_time:   1795218489.325362688 secs.nsecs
  start_time:      1795217589.575935853 secs.nsecs
  elapsed_time:    899.749426835 secs.nsecs
  read_bytes:      { samples:           2, unit: bytes, min:     4096, max:     4096, sum:             8192, sumsq:         33554432, hist: { 4K: 2 } }
  write_bytes:     { samples:           3, unit: bytes, min:  1048576, max:  4194304, sum:          9437184, sumsq:   36283883716608, hist: { 1M: 1, 4M: 2 } }
"""  # noqa: E501


def tree(root: Path, **files: bytes) -> Tree:
    for name, content in files.items():
        path = root / "proc/fs/lustre/obdfilter" / name.replace("__", "/").replace("_OST", "-OST")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Tree(Roots.of(root / "proc", root / "sys"))


def test_pools_and_room_of_a_real_server(capture: Unpack) -> None:
    root = capture("2.17.57/tree-idle")
    room = parameters.pool_capacity(Tree(Roots.of(root / "proc", root / "sys")))
    assert room.pools["flash"] == ("lustre-OST0000", "lustre-OST0001")
    assert 0 < room.avail_bytes["flash"] < room.size_bytes["flash"]


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 500, JOB_STATS[:300], b"job_stats:\n"])
def test_a_broken_file_loses_nothing_else(tmp_path: Path, data: bytes) -> None:
    seen = parameters.reading(tree(tmp_path, lustre_OST0000__job_stats=JOB_STATS, lustre_OST0001__job_stats=data), 0.0)
    assert seen.jobs["lustre-OST0000", "dd.0"].sums["write_bytes"] == 9437184


@pytest.mark.parametrize(("files", "condition"), [
    ({}, None), ({"recovery_status": b"status: INACTIVE\n"}, None), ({"kbytestotal": None}, None),
    ({"degraded": b"1\n"}, "degraded"), ({"recovery_status": None}, "recovery status unknown"),
    *(({"recovery_status": b"status: %b\n" % word}, "in recovery") for word in (b"RECOVERING", b"FROBNICATING")),
    ({"kbytesavail": b"4\n"}, "full")])
def test_conditions(tmp_path: Path, files: dict[str, bytes | None], condition: str | None) -> None:
    well = {"degraded": b"0\n", "recovery_status": b"status: COMPLETE\n",
            "kbytestotal": b"100\n", "kbytesavail": b"5\n"}
    found = {f"lustre_OST0000__{name}": text for name, text in (well | files).items() if text is not None}
    seen = parameters.reading(tree(tmp_path, lustre_OST0000__job_stats=JOB_STATS, **found), 0.0)
    assert seen.conditions.get("lustre-OST0000") == condition
