"""The token bucket filter of the simulated OSS: its buckets, and its texts beside those of a real one."""

import errno
import os
from dataclasses import replace

import pytest

from lustre.formats import nrs_policies, nrs_tbf_rule
from simulator.cluster import Cluster
from simulator.engine import Engine
from simulator.fluid.cluster import FluidCluster
from simulator.jobs.small_files import SmallFileWriter
from simulator.servers.tbf import DEPTH, Tbf
from simulator.settings import recorded_test_bed
from tests.simulator.oss import printed


def served(engine: Engine, tbf: Tbf, requests: int, sender: str = "a") -> list[float]:
    """When requests of a job, which come at once, are served in ten seconds."""
    times: list[float] = []
    for _ in range(requests):
        turn = tbf.turn("dd.0", sender)
        turn.then(lambda _: times.append(round(engine.now, 6)))
    engine.run_until(engine.now + 10.0)
    return times


def filtered(partitions: int = 1) -> tuple[Engine, Tbf]:
    engine = Engine()
    tbf = Tbf(engine, partitions)
    tbf.set_parameter("nrs_policies", "tbf jobid")
    return engine, tbf


def test_a_bucket_serves_its_depth_at_once_and_then_its_rate() -> None:
    engine, tbf = filtered()
    tbf.set_parameter("nrs_tbf_rule", "start slow jobid={dd.0} rate=2")
    assert served(engine, tbf, 6) == [0.0] * int(DEPTH) + [0.5, 1.0, 1.5]


def test_each_partition_has_a_bucket_of_its_own() -> None:
    engine, tbf = filtered(partitions=2)
    tbf.set_parameter("nrs_tbf_rule", "reg start slow jobid={dd.0} rate=1 rank=default")
    names = sorted("abcdefgh")
    waits = [len(served(engine, tbf, 4, name)) for name in names]
    assert waits == [4] * len(names)
    rules = nrs_tbf_rule.parse(dict(tbf.files())["nrs_tbf_rule"].encode()).rows
    assert [(rule.partition, rule.rule_name, rule.classes) for rule in rules] == [
        (0, b"slow", 1), (0, b"default", 0), (1, b"slow", 1), (1, b"default", 0)]
    assert [tbf.limit("dd.0", senders) for senders in (1, 2, 3)] == [1, 2, 2]


def test_requests_that_wait_are_served_when_the_rule_is_stopped() -> None:
    engine, tbf = filtered()
    tbf.set_parameter("nrs_tbf_rule", "start slow jobid={dd.0} rate=1")
    assert len(served(engine, tbf, 100)) == DEPTH + 10
    tbf.set_parameter("nrs_tbf_rule", "stop slow")
    engine.run_until(engine.now + 0.1)
    assert served(engine, tbf, 1) == [10.1]


def test_its_rules_are_printed_as_a_real_oss_does() -> None:
    _, tbf = filtered()
    tbf.set_parameter("nrs_tbf_rule", "start tierd_1 jobid={dd.0} rate=20")
    tbf.set_parameter("nrs_tbf_rule", "start tierd_2 jobid={cp.1001 fio_rand.1001} rate=50")
    real = printed("get_param ost.OSS.ost_io.nrs_tbf_rule")[1].partition(b"high_priority")[0]
    assert dict(tbf.files())["nrs_tbf_rule"].encode() == real
    policies = nrs_policies.parse(dict(tbf.files())["nrs_policies"].encode()).rows
    assert [(each.order, each.argument, each.state) for each in policies[:2]] == [
        (b"fifo", b"", b"started"), (b"tbf", b"jobid", b"started")]


@pytest.mark.parametrize(("text", "number"), [
    ("start tierd_1 jobid={x} rate=5", errno.EEXIST),
    ("start a_name_that_is_too_long jobid={x} rate=5", errno.ENAMETOOLONG),
    ("change nosuch rate=5", errno.ENOENT), ("start new jobid={x} rate=5 rank=nosuch", errno.ENOENT),
    ("start new jobid={} rate=5", errno.EINVAL), ("start new jobid={x} rate=0", errno.EINVAL), ("begin", errno.EINVAL)])
def test_it_refuses_what_the_kernel_refuses(text: str, number: int) -> None:
    _, tbf = filtered()
    tbf.set_parameter("nrs_tbf_rule", "start tierd_1 jobid={dd.0} rate=20")
    with pytest.raises(OSError, match=os.strerror(number)):
        tbf.set_parameter("nrs_tbf_rule", text)


def test_without_the_tbf_policy_nothing_waits_and_no_rule_can_be_set() -> None:
    tbf = Tbf(Engine())
    assert tbf.turn("dd.0", "a") is None
    assert list(tbf.files()) == []
    with pytest.raises(OSError, match="No such device"):
        tbf.set_parameter("nrs_tbf_rule", "stop x")
    tbf.set_parameter("nrs_policies", "tbf")
    tbf.set_parameter("nrs_tbf_rule", "start x jobid={a} rate=1")
    tbf.set_parameter("nrs_policies", "fifo")
    assert tbf.turn("a", "a") is None
    assert "default" not in dict(tbf.files())["nrs_tbf_rule"]


@pytest.mark.parametrize("model", [Cluster, FluidCluster])
def test_both_models_hold_a_job_to_its_rule(model: type[Cluster]) -> None:
    job = SmallFileWriter(job_id="small.1", sizes=(1 << 20,), files_per_second=20.0)
    cluster = model(replace(recorded_test_bed(), partitions=2), (job,))
    cluster.set_service_parameter("nrs_policies", "tbf jobid")
    cluster.set_service_parameter("nrs_tbf_rule", "start slow jobid={small.1} rate=3")
    cluster.advance(40)
    rates = cluster.throughput("small.1", 20, 40)
    assert sum(rates) / len(rates) == pytest.approx(3 / 2 * 1.048576, rel=0.15)  # a file is a write and a sync
