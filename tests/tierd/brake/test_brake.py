"""The brake: rates of a job on each OSS and its end; and a simulated site with rules over HTTP and an agent."""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.jobs.large_files import StreamingWriter
from simulator.parameters import write_parameters
from simulator.settings import recorded_test_bed
from tests.conftest import asked
from tests.tierd.later import raising
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.brake.agent import Agent
from tierd.brake.cases import BOX_SECONDS, MEASURE_SECONDS, BrakedJob, Limit, Load
from tierd.brake.command import asking
from tierd.brake.rules import KnownRule, OssState
from tierd.brake.running import Brake
from tierd.daemon.answers import to_json
from tierd.model import Finding, JobLoad, SlowdownEvidence, Window
from tierd.text import Carrier

LOSS = SlowdownEvidence(
    victim_usual_bytes_per_second=100e6, victim_bytes_per_second=60e6, slowdown=1.67, loss_low=0.3, loss_high=0.5,
    loss_probability=1.0, carrier=Carrier.ARRIVAL)
FINDING = Finding("noisy-neighbour", 100.0, "small.1", "stream.2", ("hdd0", "hdd1"), "", LOSS)
BEFORE = Load(20e6, {"hdd0": 40.0, "hdd1": 40.0})


def oss(number: int = 0, **more: object) -> OssState:
    return OssState(node=f"oss{number}", policy="jobid",
                    **{"targets": (f"hdd{number}", f"flash{number}"), **more})  # type: ignore[arg-type]


def window(rpcs: Mapping[str, float], end: float = 105.0, stream: float = 60e6, job: float = 20e6) -> Window:
    """Five seconds in which the job sends RPCs to targets, and both move bytes at these rates."""
    loads = {(target, "small.1"): JobLoad(target, "small.1", write_bytes=5 * job / len(rpcs), writes=5 * each)
             for target, each in rpcs.items()}
    if stream:
        loads["hdd0", "stream.2"] = JobLoad("hdd0", "stream.2", write_bytes=5 * stream, writes=50.0)
    return Window(end - 5, end, loads, {})


def brake_of_two() -> BrakedJob:
    return BrakedJob(number=1, fs="fs", finding=FINDING, began_at=100.0, before=BEFORE, now=BEFORE,
                     limits={"stream.2": Limit(FINDING, LOSS, 0.05, 20.0)})


IN_FORCE = KnownRule(name="tierd1_fs", condition="jobid={small.1}", rate=10, classes=1)


@pytest.mark.parametrize(("here", "jobs", "rates"), [
    ((oss(0), oss(1, targets=("hdd1",))), 1, {"oss0": 10, "oss1": 10}),
    ((oss(partitions=2),), 1, {"oss0": 5}),
    ((oss(partitions=2, rules=(IN_FORCE,)),), 1, {"oss0": 10}),  # one client: one partition is used
    ((oss(rules=(IN_FORCE.replaced(classes=5),)),), 1, {"oss0": 2}),
    ((oss(),), 50, {}),  # more classes than requests
    ((oss(queued=1800),), 1, {"oss0": 30})])  # no request waits for more than a minute
def test_what_it_may_send_is_divided_by_oss_class_and_partition(
        here: tuple[OssState, ...], jobs: int, rates: dict[str, int]) -> None:
    job = brake_of_two()
    job.update(window(BEFORE.rpcs), {}, here, jobs)
    assert job.rates == rates


def test_the_rate_rises_as_files_land_elsewhere_and_the_brake_ends() -> None:
    job, here = brake_of_two(), [oss(rules=(IN_FORCE,))]
    seen = []
    for end, flash in ((105.0, 0.0), (110.0, 10.0), (115.0, 30.0), (120.0, 75.0)):
        job.update(window({"hdd0": 10.0, "flash0": flash}, end), {}, here, 1)
        seen.append(job.rates.get("oss0"))
    assert seen == [10, 20, None, None]
    assert job.end([window({"flash0": 80.0})], 120.0) is None
    job.update(window({"flash0": 80.0}, 125.0), {}, here, 1)
    assert job.end([window({"flash0": 80.0})], 125.0) == ("it no longer loads their targets noticeably", 0.0)


@pytest.mark.parametrize("number", [0, -3, 10**400])
def test_no_number_that_somebody_reports_stops_tierd(number: int) -> None:
    """Who may read the page may report for an OSS."""
    job = brake_of_two()
    for here in (oss(partitions=number), oss(queued=number), oss(rules=(IN_FORCE.replaced(classes=number),))):
        job.update(window(BEFORE.rpcs), {}, [here], 1)
        assert all(0 < rate <= 20 for rate in job.rates.values())


@pytest.mark.parametrize(("windows", "stream", "small", "why"), [
    (4, 98e6, 3e6, None), (4, 60e6, 16e6, "they did not get faster"),
    (4, 65e6, 1e6, "it cost more bytes than it gained"), (1, 31e6, 3e6, None),
    (1, 29e6, 3e6, "the streams move less than half as much as before"),
    (1, 0.0, 3e6, "the streams move less than half as much as before")])
def test_it_is_measured_once_it_is_in_force_and_ends_at_once_if_the_stream_stands_still(
        windows: int, stream: float, small: float, why: str | None) -> None:
    """As recorded on a Lustre 2.17: both jobs wrote through one client."""
    job, here = brake_of_two(), [oss(rules=(IN_FORCE,))]
    for end in [105.0 + 5 * number for number in range(windows + 1)]:
        newest = window({"hdd0": 10.0, "hdd1": 10.0}, end, stream, small)
        job.update(newest, {}, here, 1)
        found = job.end([newest] * 3, end)
    assert found == (why and (why, BOX_SECONDS))
    assert job.lost_bytes == pytest.approx((20e6 - small) * 5 * windows)
    assert job.won_bytes == pytest.approx((stream - 60e6) * 5 * windows)


def test_windows_from_before_the_rule_measure_nothing() -> None:
    """Readings may be late, and a minute apart: then two of the last three windows are from before."""
    job, here = brake_of_two(), [oss(rules=(IN_FORCE,))]
    still = window(BEFORE.rpcs, stream=0.0)
    job.update(still, {}, here, 1)
    assert job.end([still] * 3, 105.0 + MEASURE_SECONDS) is None
    before, since = window(BEFORE.rpcs, stream=50e6), window(BEFORE.rpcs, 165.0, stream=80e6, job=10e6)
    job.update(since, {}, here, 1)
    assert job.end([before, before, since], 165.0) is None


def test_it_ends_after_its_time_and_where_no_oss_sets_the_rule() -> None:
    job = brake_of_two()
    job.update(window(BEFORE.rpcs), {}, [oss()], 1)
    assert job.end([], 100.0 + MEASURE_SECONDS - 1) is None
    assert job.end([], 100.0 + MEASURE_SECONDS) == ("no OSS has set its rule", BOX_SECONDS)
    assert job.end([], 100.0 + BOX_SECONDS) == ("10 min have passed", BOX_SECONDS)
    assert job.end([], 99.0) == ("the clock was set back", BOX_SECONDS)


NO_FILES = argparse.Namespace(user="", password_file="", ca_file="", cert_file="", key_file="")


@dataclass
class BrakedSite:
    """A site with TBF, and an agent that asks it twice in each cycle."""

    site: Site
    agent: Agent | None = None

    def __post_init__(self) -> None:
        self.set("nrs_policies", "tbf jobid")
        self.begin()

    @property
    def cluster(self) -> Cluster:
        return self.site.cluster

    def set(self, parameter: str, value: str) -> str:
        try:
            self.cluster.set_service_parameter(parameter.rpartition(".")[2], value)
        except OSError as error:
            return str(error.strerror)
        return ""

    def begin(self) -> None:
        """An agent starts."""
        leader = f"http://127.0.0.1:{self.site.service.web.port}"
        root = self.site.folder / "node"
        ask = asking(argparse.Namespace(leader=[leader], **vars(NO_FILES)))
        self.agent = Agent("oss1", Tree(Roots.of(root / "proc", root / "sys")), self.set, ask, lambda: self.cluster.now)

    def run(self, until: float) -> None:
        while self.cluster.now < until:
            for _ in range(2):
                self.cluster.advance(2.5)
                write_parameters(self.cluster, self.site.folder / "node", clients=False)
                if self.agent is not None:
                    self.agent.step()
            self.site.service.cycle()

    def run_until(self, words: str, before: float) -> str:
        while not (found := [sentence for sentence in self.site.said if words in sentence]):
            self.run(self.cluster.now + 5)
            assert self.cluster.now < before, self.site.said
        return found[0]

    @property
    def rules(self) -> list[str]:
        return [rule.name for rule in self.cluster.tbf.rules if rule.name != "default"]

    def mean(self, job: str, seconds: float = 5.0) -> float:
        rates = self.cluster.throughput(job, self.cluster.now - seconds, self.cluster.now)
        return sum(rates) / len(rates)


@pytest.fixture
def braked(site: Site) -> BrakedSite:
    """Nothing is done about the finding but the brake."""
    site.restart(act={"brake": True, "on": ("noisy-neighbour",), "mode": "full"})
    return BrakedSite(site)


def test_the_stream_has_nine_tenths_within_15_s_and_the_rule_goes_when_the_files_are_on_flash(
        braked: BrakedSite) -> None:
    braked.run(until=25)
    usual = braked.mean(STREAM.job_id)
    said = braked.run_until("BRAKED", before=60)
    assert f"BRAKED {NOISE.job_id}: " in said
    assert f"(rule tierd1_lustre), so that {STREAM.job_id} loses 5% at most" in said
    assert braked.run_until("FOUND", before=60)
    braked.run(braked.cluster.now + 5)
    assert braked.rules == ["tierd1_lustre"]
    braked.run(braked.cluster.now + 10)
    assert braked.mean(STREAM.job_id) >= 0.9 * usual
    said = braked.run_until("RELEASED", before=120)
    assert "it no longer loads their targets noticeably" in said
    assert f"{NOISE.job_id} moved about" in said
    assert braked.rules == []


def test_files_started_before_the_default_layout_are_not_slowed_for_long(site: Site) -> None:
    """What 32 threads have begun on the disks would take minutes at the rate of the rule."""
    many = replace(NOISE, threads=32, fsync=False)
    site.restart(act={"brake": True, "mode": "full"})
    site.begin_again(Cluster(recorded_test_bed(), (STREAM, many)))
    made = BrakedSite(site)
    made.run_until("BRAKED", before=90)
    begun = made.cluster.now
    assert "its new files go elsewhere" in made.run_until("RELEASED", before=begun + MEASURE_SECONDS + 15)
    assert any("SET default layout" in words for words in site.said)
    made.run(made.cluster.now + 30)
    assert made.rules == []


def test_it_does_not_begin_again_while_a_default_layout_is_measured(site: Site) -> None:
    """The rule would slow the files on flash too: on a Lustre 2.17 they filled the client that the stream shares."""
    site.restart(act={"brake": True, "mode": "full"})
    site.begin_again(Cluster(recorded_test_bed(), (STREAM, replace(NOISE, sizes=(1 << 16,)))))
    made = BrakedSite(site)
    made.run_until("RELEASED", before=120)
    site.filesystem.set_default_layout(NOISE.directory, None)  # the job loads the disks again
    made.run(made.cluster.now + 40)
    assert any(finding.aggressor == NOISE.job_id for finding in site.service.daemon.findings)
    assert made.rules == []


def test_the_verdict_is_about_the_layout_and_not_about_the_brake(braked: BrakedSite) -> None:
    """Also after a reload, of which the journal has no brake."""
    braked.run_until("RELEASED", before=120)
    released_at, memory = braked.cluster.now, braked.site.service.daemon.memory
    braked.site.restart(limits={"files_per_second": 3.0})
    braked.site.service.take_over(memory)
    for before, case in zip(memory.cases, braked.site.service.daemon.store, strict=True):
        assert (case.braked_at, case.acted_at) == (before.braked_at, before.acted_at) > (0.0, case.begun_at)
    said = braked.run_until("KEPT", before=300)
    assert "it helped" in said
    assert braked.cluster.now > released_at + braked.site.settings.verify.judge_seconds


@pytest.fixture
def without_cure(braked: BrakedSite) -> BrakedSite:
    """Its policy does not act here: files stay where they are."""
    braked.site.restart(act={"on": ()})
    braked.begin()
    return braked


def test_the_finding_holds_and_the_brake_ends_after_its_time_and_does_not_begin_again_at_once(
        without_cure: BrakedSite) -> None:
    without_cure.run_until("BRAKED", before=60)
    begun = without_cure.cluster.now
    without_cure.run(without_cure.cluster.now + 60)
    (finding,) = without_cure.site.service.daemon.findings
    assert finding.evidence.of_stream.loss_low > 0.15
    assert not any("ended" in words for words in without_cure.site.said)
    said = without_cure.run_until("RELEASED", before=begun + BOX_SECONDS + 30)
    assert "10 min have passed" in said
    explained = without_cure.site.shown("explain", "F1")
    assert "BRAKED" in explained
    assert "less than before" in explained
    assert "tierd_braked_jobs" in without_cure.site.fetched("/metrics")[1]
    memory = without_cure.site.service.daemon.memory
    without_cure.site.restart(limits={"files_per_second": 3.0})
    without_cure.site.service.take_over(memory)
    without_cure.begin()
    without_cure.run(without_cure.cluster.now + 120)
    assert without_cure.rules == []
    assert not any("BRAKED" in words for words in without_cure.site.said)


def paused(site: Site) -> None:
    site.service.gate.operating_state.pause("maintenance")


def blind(site: Site) -> None:
    site.before_reading = raising(OSError("Prometheus does not answer"))


def killed(site: Site) -> None:
    site.service.web.close()


@pytest.mark.parametrize("leader", [paused, blind, killed])
def test_a_leader_that_may_not_act_or_is_gone_leaves_no_rule(
        without_cure: BrakedSite, leader: Callable[[Site], None]) -> None:
    without_cure.run_until("BRAKED", before=60)
    without_cure.run(without_cure.cluster.now + 10)
    assert without_cure.rules == ["tierd1_lustre"]
    leader(without_cure.site)
    without_cure.run(without_cure.cluster.now + 30)
    assert without_cure.rules == []
    assert leader is killed or any("tierd may not act now" in words for words in without_cure.site.said)


@pytest.mark.parametrize("changed", [{"brake": False}, {"dry_run": True}, {"mode": "observe"}, {}])
def test_it_is_off_by_default_and_where_tierd_does_not_act(braked: BrakedSite, changed: dict[str, object]) -> None:
    braked.site.restart(act=changed)
    braked.site.service.gate.operating_state.draining = "" if changed else "maintenance"
    braked.begin()
    braked.run(until=70)
    assert any("FOUND" in words for words in braked.site.said)
    assert braked.cluster.tbf.rules[0].name == "default"
    assert not any("BRAKED" in words for words in braked.site.said)


def test_without_tbf_for_jobs_it_says_so_and_does_nothing(without_cure: BrakedSite) -> None:
    without_cure.set("nrs_policies", "fifo")
    said = without_cure.run_until("NOT BRAKED", before=60)
    assert "no OSS of its targets has both a running agent and the tbf policy with rules for jobs" in said
    without_cure.run(without_cure.cluster.now + 30)
    assert sum("BRAKED" in words for words in without_cure.site.said) == 1


def test_an_administrator_may_stop_tbf_meanwhile(without_cure: BrakedSite) -> None:
    without_cure.run_until("BRAKED", before=60)
    without_cure.run(without_cure.cluster.now + 10)
    without_cure.set("nrs_policies", "fifo")
    assert "tbf was stopped, or no agent is running" in without_cure.run_until("RELEASED", before=120)


def test_a_hostile_job_id_enters_no_rule(site: Site) -> None:
    hostile = replace(NOISE, job_id="x}.1 {*")
    site.restart(act={"brake": True, "on": ()})
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, hostile)))
    made = BrakedSite(site)
    assert "its job ids cannot be in a rule" in made.run_until("NOT BRAKED", before=90)
    assert made.rules == []


def test_another_stream_gets_a_fair_share_for_some_time(site: Site) -> None:
    large = StreamingWriter(job_id="late.1700", path="/proj/flow/late.dat", start_seconds=60.0, threads=16)
    site.restart(act={"brake": True})
    site.begin_again(FluidCluster(recorded_test_bed(), (STREAM, large)))
    made = BrakedSite(site)
    made.run(until=140)
    assert any("BRAKED late.1700" in words for words in site.said)
    assert made.mean("late.1700") <= 1.3 * made.mean(STREAM.job_id)


def test_a_second_stream_on_another_oss_lifts_no_rule_and_counts_nothing_twice(site: Site) -> None:
    daemon = site.service.daemon
    made = Brake(daemon)
    daemon.observer.windows = [window(BEFORE.rpcs)]
    made._known = {each.node: (each, 0.0) for each in (oss(0), oss(1))}
    evidence = replace(LOSS, victim_usual_bytes_per_second=10e6, victim_bytes_per_second=5e6)
    one = replace(FINDING, targets=("hdd0",), evidence=evidence, advice_only=True)
    two = replace(one, targets=("hdd1",), victim="stream.3")
    for finding in (one, two):
        daemon.log.number(finding)
    made._begin(one, 100.0)
    (braked,) = made._braked.values()
    assert braked.rates == {"oss0": 30}
    braked.in_force_at = 100.0
    daemon.observer.windows = [window({"hdd0": 30.0, "hdd1": 40.0}, job=18e6)]
    braked.update(daemon.windows[0], {}, [oss(0)], 1)
    lost = braked.lost_bytes
    made._begin(two, 105.0)
    assert braked.rates == {"oss0": 30, "oss1": 29}
    assert braked.lost_bytes == lost > 0


def test_the_rule_for_an_array_leaves_out_the_task_that_it_slows(site: Site) -> None:
    """A task that streams is a job of its own, but its array has its job id too."""
    daemon, now = site.service.daemon, site.cluster.epoch
    made = Brake(daemon)
    daemon.observer.windows = [window(BEFORE.rpcs)]
    daemon.engine._tasks = {"small.1": ("small.1", "small.3", "stream.2")}
    finding = replace(FINDING, evidence=replace(LOSS, victim_usual_bytes_per_second=10e6,
                                                victim_bytes_per_second=5e6), advice_only=True)
    daemon.log.number(finding)
    made._known, made._sure_at = {"oss0": (oss(0), now)}, now
    made._begin(finding, now)
    (rule,) = made.answer(to_json(oss(0))).rules
    assert rule.jobs == ("small.1", "small.3")


def test_odd_requests_are_refused(braked: BrakedSite) -> None:
    for kind, body, expected in (("application/json", '{"node": "a"}', 200), ("application/json", "[]", 400),
                                 ("text/plain", "{}", 415), ("application/json", '{"node": 3}', 400)):
        status, _, answer = asked(braked.site.service.web.port, "/-/brake", "POST", body, Content_Type=kind)
        assert status == expected
        assert status != 200 or json.loads(answer) == {"rules": [], "fs": "lustre"}
