"""Rebuilds of the storage below OSTs."""

from dataclasses import replace

import pytest

from tests.tierd.policies.views import halves, look
from tierd.model import StorageWork, Window
from tierd.policies.storage_rebuild import POLICY


def under(**work: StorageWork) -> list[Window]:
    """Windows at whose end the storage works below these targets."""
    windows = halves()
    windows[-1] = replace(windows[-1], storage_work={f"lustre-{target}": one for target, one in work.items()})
    return windows


NVME = StorageWork("rebuild", "nvme", 200e6, 3 << 30, "PowerFlex")


def test_each_pool_that_rebuilds_is_one_finding_with_all_its_targets() -> None:
    found = look(POLICY, under(OST0001=NVME, OST0000=NVME, OST0002=StorageWork("rebalance", "hdd", 60e6, 0)))
    assert [(one.targets, one.subject) for one in found] == [
        (("lustre-OST0002",), "rebalance of hdd"), (("lustre-OST0000", "lustre-OST0001"), "rebuild of nvme")]
    assert found[1].sentence == ("PowerFlex rebuilds its pool nvme at 200 MB/s; 3 GiB are left. This slows "
                                 "lustre-OST0000, lustre-OST0001; no job is blamed there")
    assert found[1].evidence.numbers() == {"storage_bytes_per_second": 200e6, "pending_bytes": 3 << 30}
    assert not any(one.aggressor or one.victim for one in found)


@pytest.mark.parametrize("work", [{}, {"OST0000": StorageWork("unknown", "", 0.0, 0)}])
def test_nothing_is_found_while_it_is_quiet_or_unknown(work: dict[str, StorageWork]) -> None:
    assert look(POLICY, under(**work)) == []


def test_a_rebuild_that_has_ended_is_not_found() -> None:
    ended = replace(halves(count=5)[-1], storage_work={})
    assert look(POLICY, [*under(OST0000=NVME), ended]) == []
