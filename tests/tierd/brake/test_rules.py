"""Rules of TBF: what is read of the real texts, and that only rules of ours are ever changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.formats import nrs_tbf_rule
from tests.simulator.oss import CAPTURE, Oss, printed
from tierd.brake.agent import oss_state, set_rules
from tierd.brake.rules import MAX_JOBS, KnownRule, WantedRule, commands, ours, policy_of

WANTED = WantedRule(name="tierd_F1", jobs=("dd.0",), rate=20)


def test_the_real_texts_are_read() -> None:
    policies, rules = printed("get_param ost.OSS.ost_io.nrs_policies"), printed("get_param ost.OSS.ost_io.nrs_tbf_rule")
    assert [policy_of(each) for each in policies[:3]] == [("", 0), ("jobid", 0), ("jobid", 1)]
    assert ours(nrs_tbf_rule.parse(rules[2]).rows) == (
        KnownRule(name="tierd_1", condition="jobid={dd.0}", rate=20, classes=1),
        KnownRule(name="tierd_2", condition="jobid={cp.1001 fio_rand.1001}", rate=50, classes=0))


def test_a_generic_tbf_and_one_of_jobs_and_opcodes_take_rules(tmp_path: Path) -> None:
    oss = Oss(tmp_path)
    taken = {}
    for argument in ("", " jobid", " jobid+opcode", " nid", " uid"):
        oss.write("nrs_policies", f"regular_requests:\n  - name: tbf{argument}\n    state: started\n    fallback: no\n"
                                  "    queued: 0\n    active: 0\n".encode())
        taken[argument] = oss_state("a", oss.tree)[0].takes_rules
    assert taken == {"": True, " jobid": True, " jobid+opcode": True, " nid": False, " uid": False}


def test_rules_are_started_changed_and_stopped_and_those_of_others_stay_before_ours(tmp_path: Path) -> None:
    oss = Oss(tmp_path)
    oss.set("nrs_tbf_rule", "start night jobid={dd.0} rate=5")
    for wanted, rules in (([WANTED], ["night", "tierd_F1", "default"]),
                          ([WANTED.replaced(rate=40)], ["night", "tierd_F1", "default"]),
                          ([WANTED.replaced(jobs=("a.1", "b.1"))], ["night", "tierd_F1", "default"]),
                          ([], ["night", "default"])):
        assert set_rules(wanted, oss_state("a", oss.tree)[1], oss.set) == ""
        assert oss.rules == rules
    assert oss.texts[1:] == [
        "reg start tierd_F1 jobid={dd.0} rate=20 rank=default", "reg change tierd_F1 rate=40", "stop tierd_F1",
        "reg start tierd_F1 jobid={a.1 b.1} rate=20 rank=default", "stop tierd_F1"]


def test_a_rule_that_one_partition_lacks_is_set_again() -> None:
    rules = nrs_tbf_rule.parse(b"regular_requests:\nCPT 0:\ntierd_F1 jobid={dd.0} 20, ref 1\ndefault * 10000, ref 0\n"
                               b"CPT 1:\ndefault * 10000, ref 0\n").rows
    assert list(commands([WANTED], rules)) == ["stop tierd_F1", "reg start tierd_F1 jobid={dd.0} rate=20 rank=default"]


def test_a_rule_as_lustre_2_10_to_2_16_print_it_stays() -> None:
    """``nrs_tbf_jobid_rule_dump`` prints the job ids only."""
    rules = nrs_tbf_rule.parse(b"regular_requests:\nCPT 0:\ntierd_F1 {dd.0} 20, ref 1\ndefault {*} 10000, ref 0\n").rows
    assert list(commands([WANTED], rules)) == []
    assert list(commands([WANTED.replaced(rate=40)], rules)) == ["reg change tierd_F1 rate=40"]


HOSTILE = st.text(st.sampled_from("ab1._:@-*{}, &=+\\\"'\n\0é"), max_size=40)


@given(st.lists(st.builds(WantedRule, name=st.one_of(st.just("tierd_F1"), HOSTILE),
                          jobs=st.lists(HOSTILE, max_size=3).map(tuple), rate=st.integers(-5, 2_000_000)), max_size=5))
def test_hostile_job_ids_and_names_enter_no_rule(wanted: list[WantedRule]) -> None:
    present = nrs_tbf_rule.parse(printed("get_param ost.OSS.ost_io.nrs_tbf_rule", "start bad")[0]).rows
    for text in commands(wanted, present):
        verb, *words = text.removeprefix("reg ").split(" ")
        assert words[0] in {"tierd_1", "tierd_2", "tierd_F1"}
        assert verb != "start" or (
            text.count("{") == text.count("}") == 1 and set("*,&\n\\\0'\"é+").isdisjoint(text)
            and text.endswith(" rank=default") and len(text) < 4096)


@pytest.mark.parametrize("jobs", [(), ("x" * 32,), ("a",) * (MAX_JOBS + 1)])
def test_too_many_too_long_and_no_job_ids_enter_no_rule(jobs: tuple[str, ...]) -> None:
    assert list(commands([WANTED.replaced(jobs=jobs)], ())) == []


def test_a_real_oss_takes_rules_for_regular_requests_before_default() -> None:
    """As ``tbf``, ``tbf jobid`` and ``tbf jobid+opcode`` print them."""
    texts = (CAPTURE.parent / "tbf-ranks.txt").read_text()
    asked = 'nrs_tbf_rule=reg start tierd_F9 jobid={x.1 y:2@h-3} rate=5 rank=default\nexit code 0\n'
    printed_then = texts.partition(asked)[2].partition("exit code")[0].encode()
    rules = nrs_tbf_rule.parse(printed_then).rows
    assert [(rule.priority, rule.rule_name) for rule in rules][:3] == [
        (b"regular", b"night"), (b"regular", b"tierd_F9"), (b"regular", b"default")]
    assert ours(rules) == (KnownRule(name="tierd_F9", condition="jobid={x.1 y:2@h-3}", rate=5, classes=0),)
    wanted = WantedRule(name="tierd_F9", jobs=("x.1", "y:2@h-3"), rate=7)
    assert list(commands([wanted], rules)) == ["reg change tierd_F9 rate=7"]
    assert list(commands([], rules)) == ["stop tierd_F9"]
