"""Whatever becomes of targets and pools, no sum goes back, and none grows by more than was counted meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.exporter.collectors.families import shown

INSTANCES = ("ffff9f0a8c3d1800", "ffff9f0a00000000")
TARGETS = ("OST0000", "OST0001")
SUMS = ("lustre_osc_read_bytes_total", "lustre_pool_read_bytes_total", "lustre_osc_requests_total")


class Cluster:
    """Two targets, as a mount sees them: what each has counted since when, and how much in all."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.instance = INSTANCES[0]
        self.counted = dict.fromkeys(TARGETS, 0)
        self.since = dict.fromkeys(TARGETS, 1)
        self.there = dict.fromkeys(TARGETS, True)
        self.broken = dict.fromkeys(TARGETS, "")
        self.pools = dict.fromkeys(TARGETS, "a")
        self.ever = 0

    def event(self, target: str, what: str, amount: int) -> None:
        """Something happens, and then the target counts on."""
        self.broken[target] = ""
        if what in {"clear", "failover", "remount"}:
            for name in TARGETS if what == "remount" else (target,):
                self.counted[name] = 0
                self.since[name] += 1
        if what == "remount":
            self.instance = INSTANCES[INSTANCES.index(self.instance) - 1]
        if what == "move":
            self.pools[target] = {"a": "b", "b": "a"}[self.pools[target]]
        if what in {"cut", "junk", "empty"}:
            self.broken[target] = what
        self.there[target] = what != "vanish"
        self.counted[target] += amount
        self.ever += amount

    def write(self) -> None:
        """The parameters as they are now."""
        top = self.root / "sys/kernel/debug/lustre"
        shutil.rmtree(top, ignore_errors=True)
        for target in TARGETS:
            if self.there[target]:
                folder = top / f"osc/lustre-{target}-osc-{self.instance}"
                folder.mkdir(parents=True)
                (folder / "stats").write_text(self.stats(target))
        pools = top / f"lov/lustre-clilov-{self.instance}/pools"
        pools.mkdir(parents=True)
        for pool in "ab":
            members = [target for target in TARGETS if self.pools[target] == pool]
            (pools / pool).write_text("".join(f"lustre-{target}_UUID\n" for target in members))

    def stats(self, target: str) -> str:
        count = self.counted[target]
        text = (
            f"snapshot_time 9.5 secs.nsecs\nstart_time {self.since[target]}.0 secs.nsecs\nelapsed_time 1.0 secs.nsecs\n"
            f"req_waittime {count} samples [usecs] 1 1 {count} 1\nread_bytes {count} samples [bytes] 1 1 {count} 1\n"
        )
        broken = {"": text, "cut": text[:-20], "junk": "\x00" * 40, "empty": ""}
        return broken[self.broken[target]]


WHAT = ("grow", "grow", "clear", "failover", "remount", "vanish", "move", "cut", "junk", "empty")
events = st.lists(
    st.lists(st.tuples(st.sampled_from(TARGETS), st.sampled_from(WHAT), st.integers(0, 1000)), max_size=3),
    min_size=2,
    max_size=12,
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events)
def test_sums_of_a_running_exporter(grow, exporter, samples, passes: list[list[tuple[str, str, int]]]) -> None:
    cluster = Cluster(grow({}))
    cluster.write()
    running = exporter(cluster.root)
    before: dict[tuple[str, str], int] = {}
    for steps in passes:
        for target, what, amount in steps:
            cluster.event(target, what, amount)
        cluster.write()
        text = running.scrape("osc", "pools")
        assert running.reasons() == {}
        now = {(name, pool): int(value) for name in SUMS for pool, value in shown(samples, text, name, "pool").items()}
        for key, value in now.items():
            assert value >= before.get(key, 0), key
            before[key] = value
        for name in SUMS:
            assert sum(value for (of, _), value in before.items() if of == name) <= cluster.ever
