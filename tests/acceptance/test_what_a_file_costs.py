"""Requests and calls of each move, by the counters of this client. Prints them and compares them with decision 13."""

import re
from collections import Counter

import pytest

from lustre import mounted
from lustre.mounted_calls import MountedCalls
from lustre.parameters import parse_device
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import Site, made, noise
from tests.counted_calls import Counted
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.moves import Move, Mover, MoveResult
from tierd.act.movers.space_and_quota import Destination

FILES = 32
MOST_REQUESTS = 38
"""36 on 2.17.57. Other work on the mount adds some."""
BY_TIME = ("mds_statfs", "ost_statfs", "obd_ping")
"""Requests that a client sends from time to time, whatever a mover does."""
_LINE = re.compile(rb"^(\w+) +(\d+) samples", re.MULTILINE)


def requests(site: Site) -> Counter[str]:
    """Requests of this mount to all servers of the file system so far, by operation."""
    found: Counter[str] = Counter()
    for kind in ("mdc", "osc"):
        for device in site.tree.devices(kind):
            if parse_device(device).instance == site.instance:
                data = site.tree.read(f"{kind}/{device}/stats") or b""
                for name, count in _LINE.findall(data):
                    found[f"{kind} {name.decode()}"] += int(count)
    return found


def of_files(found: Counter[str], before: Counter[str]) -> tuple[float, dict[str, float]]:
    """Requests of each file in all, and by operation. Those that come with time do not count."""
    more = {name: count / FILES for name, count in (found - before).items()}
    total = sum(count for name, count in more.items() if name.endswith(" req_waittime"))
    total -= sum(count for name, count in more.items() if name.endswith(BY_TIME))
    return total, {name: round(count, 1) for name, count in more.items() if " req_" not in name}


def test_requests_of_the_lease_engine(site: Site, ledger: Ledger) -> None:
    directory = site.directory("costs", mdt=site.mdt_count - 1)
    files = [made(site, directory / str(number), noise(4096, number)) for number in range(FILES)]
    site.forget_everything()
    calls = Counted(MountedCalls(site.library, site.mount.path,
                                 lambda: mounted.archives_follow_swaps(site.tree, site.mount.fsname)))
    fsname, path = site.mount.fsname, site.mount.path
    engine = LeaseMover(calls.calls, Destination(
        lambda: mounted.read_pools(site.tree, fsname), lambda: mounted.read_space(site.tree, fsname),
        lambda kind, owner, pool: site.library.quota(path, kind, owner, pool), 0.0))
    before = requests(site)
    outcomes = list(engine.move([Move(site.name(file), site.in_pool(site.flash)) for file in files]))
    total, by_operation = of_files(requests(site), before)
    print(f"\nlease: {total:.1f} requests a file: {by_operation}\ncalls: {dict(calls.taken())}")
    assert {outcome.result for outcome in outcomes} == {MoveResult.DONE}, [o.detail for o in outcomes if o.detail]
    ledger.enter(*files)
    if total:  # releases before 2.15 count other things under other names
        assert total <= MOST_REQUESTS


def test_requests_of_lfs(site: Site, ledger: Ledger, engine: Mover, engine_name: str) -> None:
    if engine_name != "lfs":
        pytest.skip("measured above")
    directory = site.directory("costs-lfs", mdt=site.mdt_count - 1)
    files = [made(site, directory / str(number), noise(4096, number)) for number in range(FILES)]
    site.forget_everything()
    before = requests(site)
    outcomes = list(engine.move([Move(site.name(file), site.in_pool(site.flash)) for file in files]))
    total, by_operation = of_files(requests(site), before)
    print(f"\nlfs, with what tierd asks beside it: {total:.1f} requests a file: {by_operation}")
    assert {outcome.result for outcome in outcomes} == {MoveResult.DONE}, [o.detail for o in outcomes if o.detail]
    ledger.enter(*files)
