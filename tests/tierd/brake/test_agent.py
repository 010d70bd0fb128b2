"""Rules of TBF: which are set, and that they stay only while the leader answers. In virtual time."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import nrs_tbf_rule
from lustre.parameters import Tree, read_whole
from tests.simulator.oss import CAPTURE, Oss, printed
from tests.tierd.logged import logged
from tierd.brake.agent import POLL_SECONDS, Agent, oss_state, released, set_rules
from tierd.brake.command import TIMEOUT_SECONDS
from tierd.brake.rules import MAX_JOBS, KnownRule, OssState, WantedRule, WantedRules, commands, ours, policy_of

RULE = WantedRule(name="tierd1_fs", jobs=("dd.0",), rate=20)


class Leader:
    """Answers while it lives."""

    def __init__(self, oss: Oss) -> None:
        self.agent = Agent("oss1", oss.tree, oss.set, self, lambda: self.now)
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
        return WantedRules(rules=self.rules, fs="fs")

    def run(self, until: float) -> None:
        while self.now < until:
            self.now += POLL_SECONDS
            self.agent.step()


@pytest.fixture
def oss(tmp_path: Path) -> Oss:
    return Oss(tmp_path)


@pytest.fixture
def leader(oss: Oss) -> Leader:
    return Leader(oss)


def test_without_the_leader_no_rule_stays_for_30_s(oss: Oss, leader: Leader) -> None:
    said = logged()
    leader.run(until=10)
    assert oss.rules == ["tierd1_fs", "default"]
    assert leader.heard[-1].rules[0].name == "tierd1_fs"
    leader.lives = False
    leader.run(until=20)
    assert oss.rules == ["tierd1_fs", "default"]
    leader.run(until=38)
    assert oss.rules == ["default"]
    assert any("the leader does not answer: http://leader:9170" in words for words in said)
    leader.lives = True
    leader.run(until=44)
    assert oss.rules == ["tierd1_fs", "default"]


def test_no_rule_stays_when_leader_and_standby_hang(oss: Oss, leader: Leader) -> None:
    leader.run(until=10)
    leader.lives, leader.seconds = False, 2 * TIMEOUT_SECONDS
    while oss.rules != ["default"]:
        leader.run(until=leader.now + 1)
    assert leader.now < 10 + 30 - TIMEOUT_SECONDS


def test_rules_that_a_restart_of_the_oss_took_are_set_again(oss: Oss, leader: Leader) -> None:
    leader.run(until=2)
    oss.set("nrs_policies", "tbf jobid")
    leader.run(until=4)
    assert oss.rules == ["tierd1_fs", "default"]
    assert leader.heard[-1].rules == ()


def test_where_an_administrator_stopped_tbf_nothing_is_done(oss: Oss, leader: Leader) -> None:
    said = logged()
    leader.run(until=2)
    oss.set("nrs_policies", "fifo")
    oss.texts.clear()
    leader.run(until=10)
    assert oss.texts == []
    assert leader.heard[-1].policy == ""
    assert any("no rule can be set" in words and "nrs_policies='tbf jobid'" in words for words in said)


def test_no_rule_is_set_where_tbf_orders_regular_requests_only(oss: Oss, leader: Leader, tmp_path: Path) -> None:
    """``tbf reg jobid``: the kernel takes rules, and answers ENODEV to who reads them. They would stay for ever."""
    oss.write("nrs_policies", b"regular_requests:\n  - name: tbf jobid\n    state: started\n    fallback: no\n"
                              b"    queued: 0\n    active: 0\n")
    (tmp_path / "sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_tbf_rule").unlink()
    said = logged()
    leader.run(until=10)
    assert oss.texts == []
    assert not leader.heard[-1].takes_rules
    assert any("no tbf for jobs in reg and hp" in words for words in said)


def test_a_rule_goes_that_can_no_longer_be_read(oss: Oss, leader: Leader) -> None:
    """After ``nrs_policies="fifo hp"`` it stays in force, and who reads it gets ENODEV, as who stops both kinds."""
    leader.run(until=4)
    oss.texts.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tree, "read", lambda tree, name: None if "rule" in name else read_whole(tree.path(name)))
        leader.run(until=10)
    assert oss.texts == ["reg stop tierd1_fs"]
    assert not leader.heard[-1].takes_rules


def test_the_agent_lives_on_while_tbf_ends(oss: Oss, leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its queue is empty, the kernel answers EAGAIN: with a rule that may take a minute."""
    monkeypatch.setattr(Tree, "read", Mock(side_effect=[BlockingIOError(), b""] * 3))
    leader.agent.step()
    assert not leader.heard[-1].takes_rules
    assert released(oss.tree, oss.set)


def test_errors_reach_the_leader_with_their_text(oss: Oss, leader: Leader) -> None:
    agent = Agent("oss1", oss.tree, lambda *_: "error: set_param: File exists", leader, lambda: 0.0)
    agent.step()
    agent.step()
    assert leader.heard[-1].trouble == "error: set_param: File exists"


def test_the_rules_of_two_file_systems_stay(oss: Oss, leader: Leader) -> None:
    """Each of two agents stopped the rules of the other one, every two seconds."""
    oss.set("nrs_tbf_rule", "start tierd1_other jobid={dd.0} rate=20")
    leader.run(until=10)
    assert oss.rules == ["tierd1_other", "tierd1_fs", "default"]
    leader.lives = False
    leader.run(until=40)
    assert oss.rules == ["tierd1_other", "default"]


def test_stale_rules_are_removed_and_others_stay(oss: Oss) -> None:
    oss.set("nrs_tbf_rule", "start tierd7_other jobid={dd.0} rate=20")
    oss.set("nrs_tbf_rule", "start night jobid={dd.0} rate=20")
    assert released(oss.tree, oss.set)
    assert oss.rules == ["night", "default"]


def test_the_real_texts_are_read() -> None:
    policies, rules = printed("get_param ost.OSS.ost_io.nrs_policies"), printed("get_param ost.OSS.ost_io.nrs_tbf_rule")
    assert [policy_of(each) for each in policies[:3]] == [("", 0), ("jobid", 0), ("jobid", 1)]
    assert ours(nrs_tbf_rule.parse(rules[2]).rows) == (
        KnownRule(name="tierd_1", condition="jobid={dd.0}", rate=20, classes=1),
        KnownRule(name="tierd_2", condition="jobid={cp.1001 fio_rand.1001}", rate=50, classes=0))


def test_a_generic_tbf_and_one_of_jobs_and_opcodes_take_rules(oss: Oss) -> None:
    taken = {}
    for argument in ("", " jobid", " jobid+opcode", " nid", " uid"):
        oss.write("nrs_policies", f"regular_requests:\n  - name: tbf{argument}\n    state: started\n    fallback: no\n"
                                  "    queued: 0\n    active: 0\n".encode())
        taken[argument] = oss_state("a", oss.tree)[0].takes_rules
    assert taken == {"": True, " jobid": True, " jobid+opcode": True, " nid": False, " uid": False}


def test_rules_are_started_changed_and_stopped_and_those_of_others_stay_before_ours(oss: Oss) -> None:
    oss.set("nrs_tbf_rule", "start night jobid={dd.0} rate=5")
    for wanted, rules in (([RULE], ["night", "tierd1_fs", "default"]),
                          ([RULE.replaced(rate=40)], ["night", "tierd1_fs", "default"]),
                          ([RULE.replaced(jobs=("a.1", "b.1"))], ["night", "tierd1_fs", "default"]),
                          ([], ["night", "default"])):
        assert set_rules(WantedRules(tuple(wanted), "fs"), oss_state("a", oss.tree)[1], oss.set) == ""
        assert oss.rules == rules
    assert oss.texts[1:] == [
        "reg start tierd1_fs jobid={dd.0} rate=20 rank=default", "reg change tierd1_fs rate=40", "reg stop tierd1_fs",
        "reg start tierd1_fs jobid={a.1 b.1} rate=20 rank=default", "reg stop tierd1_fs"]


@pytest.mark.parametrize(("text", "rate", "asked"), [
    ("tierd1_fs jobid={dd.0} 20, ref 1\ndefault * 10000, ref 0\nCPT 1:\ndefault * 10000, ref 0\n", 20,
     ["reg stop tierd1_fs", "reg start tierd1_fs jobid={dd.0} rate=20 rank=default"]),
    # as nrs_tbf_jobid_rule_dump of 2.10 to 2.16 prints it
    ("tierd1_fs {dd.0} 20, ref 1\ndefault {*} 10000, ref 0\n", 20, []),
    ("tierd1_fs {dd.0} 20, ref 1\ndefault {*} 10000, ref 0\n", 40, ["reg change tierd1_fs rate=40"])])
def test_a_rule_that_one_partition_lacks_is_set_again_and_others_stay(text: str, rate: int, asked: list[str]) -> None:
    rules = nrs_tbf_rule.parse(f"regular_requests:\nCPT 0:\n{text}".encode()).rows
    assert list(commands([RULE.replaced(rate=rate)], rules)) == asked


HOSTILE = st.text(st.sampled_from("ab1._:@-*{}, &=+\\\"'\n\0é"), max_size=40)


@given(st.lists(st.builds(WantedRule, name=st.one_of(st.just("tierd1_fs"), HOSTILE),
                          jobs=st.lists(HOSTILE, max_size=3).map(tuple), rate=st.integers(-5, 2_000_000)), max_size=5))
def test_hostile_job_ids_and_names_enter_no_rule(wanted: list[WantedRule]) -> None:
    present = nrs_tbf_rule.parse(printed("get_param ost.OSS.ost_io.nrs_tbf_rule", "start bad")[0]).rows
    for text in commands(wanted, present):
        verb, *words = text.removeprefix("reg ").split(" ")
        assert words[0] in {"tierd_1", "tierd_2", "tierd1_fs"}
        assert verb != "start" or (
            text.count("{") == text.count("}") == 1 and set("*,&\n\\\0'\"é+").isdisjoint(text)
            and text.endswith(" rank=default") and len(text) < 4096)


@pytest.mark.parametrize("jobs", [(), ("x" * 32,), ("a",) * (MAX_JOBS + 1)])
def test_too_many_too_long_and_no_job_ids_enter_no_rule(jobs: tuple[str, ...]) -> None:
    assert list(commands([RULE.replaced(jobs=jobs)], ())) == []


def test_a_real_oss_takes_rules_for_regular_requests_before_default() -> None:
    """As ``tbf``, ``tbf jobid`` and ``tbf jobid+opcode`` print them."""
    texts = (CAPTURE.parent / "tbf-ranks.txt").read_text()
    asked = 'nrs_tbf_rule=reg start tierd_F9 jobid={x.1 y:2@h-3} rate=5 rank=default\nexit code 0\n'
    printed_then = texts.partition(asked)[2].partition("exit code")[0].encode()
    rules = nrs_tbf_rule.parse(printed_then).rows
    assert [(rule.priority, rule.rule_name) for rule in rules][:3] == [
        (b"regular", b"night"), (b"regular", b"tierd_F9"), (b"regular", b"default")]
    assert ours(rules) == (KnownRule(name="tierd_F9", condition="jobid={x.1 y:2@h-3}", rate=5, classes=0),)
