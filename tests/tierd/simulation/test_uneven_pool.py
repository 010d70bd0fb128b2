"""The scenario of an uneven pool, with tierd at work and a job beside it."""

from __future__ import annotations

from simulator.scenarios import scenario
from tierd.config.load import parse
from tierd.config.settings import Settings
from tierd.simulation.run import Outcome, run

ON = (b"[act]\non = ['imbalance']\n[limits]\nfiles_per_second = 50\nper_pool = {files_per_second = 50}\n"
      b"per_target = {files_per_second = 50}\n[rebalance]\nreserve = 0.05\n")


def outcome(seed: int, policy: Settings) -> Outcome:
    loaded = scenario.library("uneven-pool")
    return run(loaded.build(seed), loaded.jobs, loaded.seconds, policy=policy)


def test_the_pool_becomes_even_within_five_minutes_and_a_job_beside_it_is_not_slowed() -> None:
    with_tierd, without = outcome(7, parse(ON, "t.toml")), outcome(7, Settings())
    entries = [entry for entry in with_tierd.entries if entry.kind == "migrate"]
    assert len(entries) > 100
    assert {entry.outcome for entry in entries} == {"done"}
    assert len({entry.place for entry in entries}) == len(entries)
    assert without.entries == ()
    begun = [time for time, found in with_tierd.findings if found.kind == "imbalance"]
    assert len(begun) == 1, "it does not come back"
    assert any(words == "ended: imbalance of 'fill of lustre-OST0003'" for _, words in with_tierd.log)
    job = "trickle.1504"
    assert with_tierd.mean(job, 60, 290) >= 0.97 * without.mean(job, 60, 290)
