from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.tierd.detect.views import FLASH, POOLS, filled, halves, look
from tests.tierd.worlds import TARGETS
from tierd.model import DirectoryActivity, Facts, Finding, JobLoad, NamespaceLoad
from tierd.policies.hot_small_files import POLICY

KIB = 1 << 10


def reader(reads_s: float, size: float = 64 * KIB, targets: Sequence[str] = TARGETS, opens_s: float | None = None,
           writes_s: float = 0.0) -> tuple[list[JobLoad], NamespaceLoad]:
    """A job that opens a file and reads it with one RPC, for half a minute."""
    each = 30 * reads_s / len(targets)
    loads = [JobLoad(t, "py.3", read_bytes=each * size, reads=each, writes=30 * writes_s / len(targets),
                     busy_usec=each * 9000) for t in targets]
    return loads, NamespaceLoad("py.3", opens=30 * (reads_s if opens_s is None else opens_s))


def found(part: tuple[list[JobLoad], NamespaceLoad], opens: int = 12_000, creates: int = 0, active: bool = False,
          pools: dict[str, tuple[str, ...]] | None = None) -> list[Finding]:
    facts = Facts(pools=POOLS if pools is None else pools, fill=filled(), directory_seconds=600.0, directories=(
        DirectoryActivity("py.3", "/sw/site-packages", creates=creates, opens=opens),
        DirectoryActivity("py.3", "/home/u", opens=3)))
    return look(POLICY, halves(part), facts, {("hot-small-files", "py.3", "")} if active else ())


def test_small_files_read_again_and_again_from_disk_are_reported() -> None:
    (finding,) = found(reader(20))
    assert (finding.aggressor, finding.directories, finding.targets) == ("py.3", ("/sw/site-packages",), TARGETS)
    assert "opens 20 existing files/s in /sw/site-packages and reads 64 KiB of each" in finding.sentence
    assert round(finding.evidence.numbers()["usec_per_rpc"]) == 9000
    assert not finding.advice_only


@pytest.mark.parametrize(("part", "changes"), [
    pytest.param(reader(20, targets=FLASH), {}, id="on flash"),
    pytest.param(reader(2, opens_s=200), {}, id="cached by the clients"),
    pytest.param(reader(20, size=1 << 20, opens_s=0.5), {}, id="large files"),
    pytest.param(reader(20, writes_s=30), {}, id="more writes than reads"),
    pytest.param(reader(20), {"creates": 8000}, id="a directory that is written"),
    pytest.param(reader(20), {"pools": {}}, id="no pools"),
    pytest.param(reader(20), {"opens": 0}, id="no open records"),
])
def test_other_files_are_not_reported(part: tuple[list[JobLoad], NamespaceLoad], changes: dict[str, Any]) -> None:
    assert found(part, **changes) == []


def test_hysteresis() -> None:
    assert found(reader(7)) == []
    assert found(reader(7), active=True)
    assert found(reader(4), active=True) == []
