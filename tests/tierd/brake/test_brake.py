"""The brake of a simulated site: the leader's rules over HTTP, the agent of its OSS, and what detection makes of it."""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from lustre.parameters import Roots, Tree
from simulator.cluster import Cluster
from simulator.fluid.cluster import FluidCluster
from simulator.jobs.large_files import StreamingWriter
from simulator.parameters import write_parameters
from simulator.settings import recorded_test_bed
from tests.tierd.brake.test_cases import BEFORE, FINDING, oss, window
from tests.tierd.brake.test_cases import STREAM as STREAM_OF
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site, fetched, shown
from tierd.brake.agent import Agent
from tierd.brake.cases import BOX_SECONDS, MEASURE_SECONDS
from tierd.brake.command import asking
from tierd.brake.running import Brake
from tierd.daemon.answers import to_json

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
    assert f"(rule tierd_F1), so that {STREAM.job_id} loses 5% at most" in said
    assert braked.run_until("FOUND", before=60)
    braked.run(braked.cluster.now + 5)
    assert braked.rules == ["tierd_F1"]
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
    braked.run_until("RELEASED", before=120)
    released_at = braked.cluster.now
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
        without_cure: BrakedSite, capsys: pytest.CaptureFixture[str]) -> None:
    without_cure.run_until("BRAKED", before=60)
    begun = without_cure.cluster.now
    without_cure.run(without_cure.cluster.now + 60)
    (finding,) = without_cure.site.service.daemon.findings
    assert finding.evidence.of_stream.loss_low > 0.15
    assert not any("ended" in words for words in without_cure.site.said)
    said = without_cure.run_until("RELEASED", before=begun + BOX_SECONDS + 30)
    assert "10 min have passed" in said
    explained = shown(capsys, "explain", "F1", site=without_cure.site)
    assert "BRAKED" in explained
    assert "less than before" in explained
    assert "tierd_braked_jobs" in fetched(without_cure.site, "/metrics")[1]
    without_cure.run(without_cure.cluster.now + 120)
    assert without_cure.rules == []
    assert sum("BRAKED" in words for words in without_cure.site.said) == 1


def paused(site: Site) -> None:
    site.service.gate.operating_state.pause("maintenance")


def blind(site: Site) -> None:
    def fail() -> None:
        raise OSError("Prometheus does not answer")

    site.before_reading = fail


def killed(site: Site) -> None:
    site.service.web.close()


@pytest.mark.parametrize("leader", [paused, blind, killed])
def test_a_leader_that_may_not_act_or_is_gone_leaves_no_rule(
        without_cure: BrakedSite, leader: Callable[[Site], None]) -> None:
    without_cure.run_until("BRAKED", before=60)
    without_cure.run(without_cure.cluster.now + 10)
    assert without_cure.rules == ["tierd_F1"]
    leader(without_cure.site)
    without_cure.run(without_cure.cluster.now + 30)
    assert without_cure.rules == []
    assert leader is killed or any("tierd may not act now" in words for words in without_cure.site.said)


@pytest.mark.parametrize("changed", [{"brake": False}, {"dry_run": True}, {"mode": "observe"}])
def test_it_is_off_by_default_and_where_tierd_does_not_act(braked: BrakedSite, changed: dict[str, object]) -> None:
    braked.site.restart(act=changed)
    braked.begin()
    braked.run(until=70)
    assert any("FOUND" in words for words in braked.site.said)
    assert braked.cluster.tbf.rules[0].name == "default"
    assert not any("BRAKED" in words for words in braked.site.said)


def test_during_a_drain_of_tierd_no_brake_begins(without_cure: BrakedSite) -> None:
    without_cure.site.service.gate.operating_state.drain("maintenance")
    without_cure.run(until=70)
    assert any("FOUND" in words for words in without_cure.site.said)
    assert not any("BRAKED" in words for words in without_cure.site.said)


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
    evidence = replace(STREAM_OF, victim_usual_bytes_per_second=10e6, victim_bytes_per_second=5e6)
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
    finding = replace(FINDING, evidence=replace(STREAM_OF, victim_usual_bytes_per_second=10e6,
                                                victim_bytes_per_second=5e6), advice_only=True)
    daemon.log.number(finding)
    made._known, made._sure_at = {"oss0": (oss(0), now)}, now
    made._begin(finding, now)
    (rule,) = made.answer(to_json(oss(0))).rules
    assert rule.jobs == ("small.1", "small.3")


def test_odd_requests_are_refused(braked: BrakedSite) -> None:
    url = f"http://127.0.0.1:{braked.site.service.web.port}/-/brake"
    answers = {}
    for kind, body in (("application/json", b'{"node": "a"}'), ("application/json", b"[]"), ("text/plain", b"{}"),
                       ("application/json", b'{"node": 3}')):
        request = urllib.request.Request(url, body, {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request) as answer:
                answers[kind, body] = json.load(answer)
        except urllib.error.HTTPError as error:
            answers[kind, body] = error.code
    assert list(answers.values()) == [{"rules": []}, 400, 415, 400]
