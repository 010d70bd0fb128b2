"""Leaders, movers and NATS servers as processes that are killed and stopped while files move.

Whatever happens: every file has one of its two layouts, none is exchanged twice, contents stay, no target is used by
more movers than allowed, and the journal of the last leader is right. ``TIERD_CHAOS=FILES[:SEED]`` runs longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tierd.cluster.broker import Broker, until
from tests.tierd.cluster.chaos import Site, chaos


@pytest.fixture
def site(tmp_path: Path, shared_broker: Broker) -> Iterator[Site]:
    made = Site(tmp_path, [shared_broker.url], files=600)
    yield made
    made.close()


def test_movers_and_leaders_are_killed_and_stopped(site: Site) -> None:
    site.start("leader", "leader-a")
    for name in ("m1", "m2", "m3"):
        site.start("mover", name)
    until(lambda: site.moved > 20, "files move", 30, site.logs)
    site.start("leader", "leader-b")
    site.kill("m1")
    site.freeze("m2")
    until(lambda: site.moved > 60, "one mover goes on", 30, site.logs)
    site.start("mover", "m1")
    until(lambda: "standing by" in site.log("leader-b"), "the other leader stands by")
    leading, standby = site.leader, "leader-b" if site.leader == "leader-a" else "leader-a"
    site.kill(leading)
    site.freeze("m2", frozen=False)
    until(lambda: "leading" in site.log(standby), "the standby leads", 30, site.logs)
    until(lambda: site.moved > 150, "files move again", 30, site.logs)
    site.start("leader", leading)
    until(lambda: "standing by" in site.log(leading).rstrip().rpartition("\n")[2], "it stands by now")
    site.freeze(standby)  # it holds the claim, and its clock stands still
    until(lambda: site.leader == leading, "the first leads again", 30, site.logs)
    until(lambda: site.moved > 250, "files move again", 30, site.logs)
    site.freeze(standby, frozen=False)
    until(lambda: "LOST" in site.log(standby), "the stopped one finds that it was replaced", 10, site.logs)
    until(lambda: site.finished() == leading, "all files are moved", 60, site.logs)
    site.check()


@pytest.mark.skipif("TIERD_CHAOS" not in os.environ, reason="long: TIERD_CHAOS=FILES[:SEED]")
def test_chaos(tmp_path: Path, own_broker: Broker) -> None:
    files, _, seed = os.environ["TIERD_CHAOS"].partition(":")
    chaos(tmp_path, own_broker, int(files), int(seed or 0))
