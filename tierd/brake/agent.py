"""The agent on an OSS: it sets the rules that the leader wants, and removes them without the leader.

The kernel keeps a rule until somebody stops it. So the agent holds each rule only while the leader answers: after
``LEASE_SECONDS`` without an answer it removes all rules of ours; so do its start and its end, and the unit if it was
killed (``ExecStopPost=``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from lustre.formats import nrs_tbf_rule
from lustre.parameters import Tree
from tierd.brake.rules import OssState, Rules, WantedRules, commands, ours, policy_of

log = logging.getLogger("tierd.brake")
LEASE_SECONDS = 20.0
"""Time without an answer after which rules are removed: with requests and commands under way, within 30 s."""
POLL_SECONDS = 2.0
"""Time between two requests to the leader. A choice: a brake acts within two cycles."""
SERVICE = "ost/OSS/ost_io"
"""The service of bulk RPCs, for all OSTs of the node."""
Ask = Callable[[OssState], WantedRules]
"""Tells the leader about this OSS, and returns the rules that it wants. Raises OSError or ValueError."""
SetParameter = Callable[[str, str], str]
"""Sets a parameter to a value. Returns why it cannot, or ""."""


def oss_state(node: str, tree: Tree, before: Rules = ()) -> tuple[OssState, Rules]:
    """What an OSS has now. Rules cannot be read while ``tbf`` ends, until its queue is empty (EAGAIN), and unless it
    orders requests of both kinds (ENODEV). Then none is set; if it orders regular ones, it has those of ``before``.
    """
    try:
        text = tree.read(f"{SERVICE}/nrs_tbf_rule")
    except BlockingIOError:
        text = None
    policy, queued = policy_of(tree.read(f"{SERVICE}/nrs_policies") or b"")
    rules = nrs_tbf_rule.parse(text).rows if text is not None else before if policy else ()
    return OssState(node=node, targets=tree.devices("obdfilter"), policy="" if text is None else policy, queued=queued,
                    partitions=len({rule.partition for rule in rules}) or 1, rules=ours(rules)), rules


def set_rules(wanted: WantedRules, rules: Rules, set_parameter: SetParameter) -> str:
    """Change our rules of a file system to the wanted ones. Returns what failed, or ""."""
    trouble = []
    for text in commands(wanted.rules, rules, wanted.fs):
        failed = set_parameter(f"{SERVICE.replace('/', '.')}.nrs_tbf_rule", text)
        log.log(logging.WARNING if failed else logging.INFO, "nrs_tbf_rule: %s%s", text, failed and f": {failed}")
        trouble += [failed] * bool(failed)
    return "; ".join(trouble)


def released(tree: Tree, set_parameter: SetParameter) -> bool:
    """Remove all rules of ours. Returns whether none is left."""
    set_rules(WantedRules(), oss_state("", tree)[1], set_parameter)
    return not oss_state("", tree)[0].rules  # read again: a command may have failed


class Agent:
    """Its state between two steps. One thread calls it."""

    def __init__(self, node: str, tree: Tree, set_parameter: SetParameter, ask: Ask,
                 monotonic: Callable[[], float]) -> None:
        self._node, self._tree, self._set, self._ask, self._monotonic = node, tree, set_parameter, ask, monotonic
        self._wanted = WantedRules()
        self._rules: Rules = ()
        self._until, self._trouble = float("-inf"), ""
        self._said: dict[str, str] = {}

    def step(self) -> None:
        """Ask the leader for its rules, and set them."""
        if self._wanted.rules and self._monotonic() >= self._until:  # at once: the request may take seconds
            self._wanted = self._wanted.replaced(rules=())
            set_rules(self._wanted, oss_state("", self._tree)[1], self._set)
        state, rules = oss_state(self._node, self._tree, self._rules)
        now = self._monotonic()  # the lease counts from the request: the answer may be late
        try:
            self._wanted = self._ask(state.replaced(trouble=self._trouble))
        except (OSError, ValueError) as error:
            self._say("leader", f"the leader does not answer: {error}")
        else:
            self._until = now + LEASE_SECONDS
            self._say("leader", "the leader answers")
        self._say("policy", f"the policy of {SERVICE} is tbf {state.policy}: rules can be set" if state.takes_rules else
                  "no rule can be set: this node is no OSS, or has no tbf for jobs in reg and hp "
                  "(lctl set_param ost.OSS.ost_io.nrs_policies='tbf jobid')")
        holds = state.takes_rules and self._monotonic() < self._until
        wanted = self._wanted if holds else self._wanted.replaced(rules=())
        self._trouble = set_rules(wanted, rules, self._set) if wanted.fs else ""  # no answer has come yet
        self._rules = rules if state.takes_rules or self._trouble else ()

    def _say(self, about: str, words: str) -> None:
        if self._said.get(about) != words:
            self._said[about] = words
            log.info("%s", words)
