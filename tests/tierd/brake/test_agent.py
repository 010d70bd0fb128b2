"""The agent in virtual time: rules stay only while the leader answers."""

from __future__ import annotations

from pathlib import Path

from tests.simulator.oss import Oss
from tests.tierd.logged import logged
from tierd.brake.agent import POLL_SECONDS, Agent, released
from tierd.brake.command import TIMEOUT_SECONDS
from tierd.brake.rules import OssState, WantedRule, WantedRules

RULE = WantedRule(name="tierd_F1", jobs=("dd.0",), rate=20)


class Leader:
    """Answers while it lives."""

    def __init__(self) -> None:
        self.lives = True
        self.rules: tuple[WantedRule, ...] = (RULE,)
        self.heard: list[OssState] = []
        self.now = self.seconds = 0.0
        """``seconds``: time that a question takes."""

    def __call__(self, state: OssState) -> WantedRules:
        self.heard.append(state)
        self.now += self.seconds
        if not self.lives:
            raise ConnectionRefusedError("http://leader:9170/-/brake: connection refused")
        return WantedRules(rules=self.rules)

    def agent(self, oss: Oss) -> Agent:
        return Agent("oss1", oss.tree, oss.set, self, lambda: self.now)

    def run(self, agent: Agent, until: float) -> None:
        while self.now < until:
            self.now += POLL_SECONDS
            agent.step()


def test_without_the_leader_no_rule_stays_for_30_s(tmp_path: Path) -> None:
    oss, leader = Oss(tmp_path), Leader()
    agent, said = leader.agent(oss), logged()
    leader.run(agent, until=10)
    assert oss.rules == ["tierd_F1", "default"]
    assert leader.heard[-1].rules[0].name == "tierd_F1"
    leader.lives = False
    leader.run(agent, until=20)
    assert oss.rules == ["tierd_F1", "default"]
    leader.run(agent, until=38)
    assert oss.rules == ["default"]
    assert any("the leader does not answer: http://leader:9170" in words for words in said)
    leader.lives = True
    leader.run(agent, until=44)
    assert oss.rules == ["tierd_F1", "default"]


def test_no_rule_stays_when_leader_and_standby_hang(tmp_path: Path) -> None:
    oss, leader = Oss(tmp_path), Leader()
    agent = leader.agent(oss)
    leader.run(agent, until=10)
    leader.lives, leader.seconds = False, 2 * TIMEOUT_SECONDS
    while oss.rules != ["default"]:
        leader.run(agent, until=leader.now + 1)
    assert leader.now < 10 + 30 - TIMEOUT_SECONDS


def test_an_answer_without_the_rule_removes_it_at_once(tmp_path: Path) -> None:
    oss, leader = Oss(tmp_path), Leader()
    agent = leader.agent(oss)
    leader.run(agent, until=2)
    leader.rules = ()
    leader.run(agent, until=4)
    assert oss.rules == ["default"]


def test_rules_that_a_restart_of_the_oss_took_are_set_again(tmp_path: Path) -> None:
    oss, leader = Oss(tmp_path), Leader()
    agent = leader.agent(oss)
    leader.run(agent, until=2)
    oss.set("nrs_policies", "tbf jobid")
    leader.run(agent, until=4)
    assert oss.rules == ["tierd_F1", "default"]
    assert leader.heard[-1].rules == ()


def test_where_an_administrator_stopped_tbf_nothing_is_done(tmp_path: Path) -> None:
    oss, leader = Oss(tmp_path), Leader()
    agent, said = leader.agent(oss), logged()
    leader.run(agent, until=2)
    oss.set("nrs_policies", "fifo")
    oss.texts.clear()
    leader.run(agent, until=10)
    assert oss.texts == []
    assert leader.heard[-1].policy == ""
    assert any("no rule can be set until an administrator starts it" in words for words in said)


def test_no_rule_is_set_where_tbf_orders_regular_requests_only(tmp_path: Path) -> None:
    """``tbf reg jobid``: the kernel takes rules, and answers ENODEV to who reads them. They would stay for ever."""
    oss, leader = Oss(tmp_path), Leader()
    oss.write("nrs_policies", b"regular_requests:\n  - name: tbf jobid\n    state: started\n    fallback: no\n"
                              b"    queued: 0\n    active: 0\n")
    (tmp_path / "sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_tbf_rule").unlink()
    agent, said = leader.agent(oss), logged()
    leader.run(agent, until=10)
    assert oss.texts == []
    assert not leader.heard[-1].takes_rules
    assert any("no tbf for jobs in reg and hp" in words for words in said)


def test_errors_reach_the_leader_with_their_text(tmp_path: Path) -> None:
    oss, leader = Oss(tmp_path), Leader()
    agent = Agent("oss1", oss.tree, lambda *_: "error: set_param: File exists", leader, lambda: 0.0)
    agent.step()
    agent.step()
    assert leader.heard[-1].trouble == "error: set_param: File exists"


def test_stale_rules_are_removed_and_others_stay(tmp_path: Path) -> None:
    oss = Oss(tmp_path)
    oss.set("nrs_tbf_rule", "start tierd_F7 jobid={dd.0} rate=20")
    oss.set("nrs_tbf_rule", "start night jobid={dd.0} rate=20")
    assert released(oss.tree, oss.set)
    assert oss.rules == ["night", "default"]
