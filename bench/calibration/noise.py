"""The noisy-neighbour experiment on the described machine, and how far it hangs on what the paper does not say."""

from __future__ import annotations

from dataclasses import replace

from simulator import scenario
from simulator.cluster import Cluster
from simulator.devices import RaidSettings
from simulator.ost_settings import OstSettings
from simulator.scenario import Scenario

STREAM, NOISE = "ior.1002", "mdtest.1001"
CASES = ("alone", "contended", "flash_covers", "flash_too_small", "contended_1m")


def shares(
    seconds: float, chunk_bytes: int | None = None, noise_nodes: int | None = None, seed: int = 1
) -> dict[str, float]:  # fmt: skip
    """MB/s alone, and what the stream keeps of it in the other cases."""
    variants = scenario.library("noisy-neighbour-paper").variants()
    rates = {name: _rate(variants[name], seconds, chunk_bytes, noise_nodes, seed) for name in CASES}
    alone = rates["alone"]
    return {name: rate if name == "alone" else rate / alone for name, rate in rates.items()}


def _rate(variant: Scenario, seconds: float, chunk_bytes: int | None, noise_nodes: int | None, seed: int) -> float:
    settings = variant.settings(seed)
    if chunk_bytes is not None:
        settings = replace(settings, osts=tuple(_with_chunk(ost, chunk_bytes) for ost in settings.osts))
    jobs = [replace(job, nodes=noise_nodes) if noise_nodes and job.job_id == NOISE else job for job in variant.jobs]
    cluster = Cluster(settings, jobs)
    cluster.advance(seconds)
    return cluster.log.mean(STREAM, 1, seconds)


def _with_chunk(ost: OstSettings, chunk_bytes: int) -> OstSettings:
    if not isinstance(ost.device, RaidSettings):
        return ost
    return replace(ost, device=replace(ost.device, chunk_bytes=chunk_bytes))
