"""TBF rules as the leader wants them and as an OSS has them, and the texts that change one into the other.

A job id is text that users choose, so only ids of harmless characters enter a rule: ``lustre/ptlrpc/nrs_tbf.c`` splits
conditions at spaces, commas, ampersands and the last brace, and ``*`` fits anything. Rules apply to regular requests
only: high-priority ones must not wait, because a lock is being recalled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from lustre.formats import nrs_policies, nrs_tbf_rule
from tierd.structs import Struct

NAME = re.compile(r"(?=.{1,15}\Z)tierd[0-9]*_([A-Za-z0-9_]+)")
"""Our rules, with the file system; 15 characters at most (``MAX_TBF_NAME``). Others belong to the administrator."""
JOB = re.compile(r"[A-Za-z0-9._:@-]{1,31}")
"""Job ids that may be in a rule, as long as ``LUSTRE_JOBID_SIZE`` allows."""
MAX_JOBS = 100
"""Jobs in one rule. With all of 31 characters the text is shorter than the kernel's 4,095."""
MAX_RATE = 999_999
"""``LPROCFS_NRS_RATE_MAX`` is one more."""
Rules = Collection[nrs_tbf_rule.Rule]


class WantedRule(Struct, frozen=True, kw_only=True):
    """A rule as the leader wants it on one OSS."""

    name: str
    jobs: tuple[str, ...]
    rate: int
    """Requests per second for each class of requests."""

    @property
    def condition(self) -> str:
        return f"jobid={{{' '.join(self.jobs)}}}"

    @property
    def is_safe(self) -> bool:
        """Whether the name is ours, the job ids have harmless characters only, and the rate is within the limits.

        >>> [WantedRule(name="tierd1_fs", jobs=(job,), rate=20).is_safe for job in ("cp.1001", "*", "a b", "a}", "a,b")]
        [True, False, False, False, False]
        """
        return (NAME.fullmatch(self.name) is not None and 0 < len(self.jobs) <= MAX_JOBS and 0 < self.rate <= MAX_RATE
                and all(JOB.fullmatch(job) for job in self.jobs))


class WantedRules(Struct, frozen=True):
    """The answer of the leader: all rules of its file system, as it stands in their names, for one OSS."""

    rules: tuple[WantedRule, ...] = ()
    fs: str = ""


class KnownRule(Struct, frozen=True, kw_only=True):
    """A rule of ours on an OSS."""

    name: str
    condition: str
    """Empty if it is not the same on all CPTs."""
    rate: int
    classes: int
    """Number of classes that use it now, on all CPTs."""


class OssState(Struct, frozen=True, kw_only=True):
    """What an agent reports about its OSS."""

    node: str
    targets: tuple[str, ...] = ()
    policy: str = ""
    """What ``tbf`` distinguishes, such as ``jobid``; ``generic`` for a condition of any kind; "" without ``tbf``."""
    queued: int = 0
    """Requests that ``tbf`` holds back now."""
    partitions: int = 1
    """Number of CPTs."""
    rules: tuple[KnownRule, ...] = ()
    trouble: str = ""
    """Why rules could not be set."""

    @property
    def takes_rules(self) -> bool:
        """Whether rules for jobs can be set. tierd never starts, stops or switches a policy."""
        return not {"jobid", "generic"}.isdisjoint(self.policy.split("+"))


def policy_of(policies: bytes) -> tuple[str, int]:
    """What the ``tbf`` that runs for regular requests distinguishes, and its queue; "" if another policy runs."""
    return next(((each.argument.decode("ascii", "replace") or "generic", each.queued)
                 for each in nrs_policies.parse(policies).rows
                 if each.priority == b"regular" and each.order == b"tbf" and each.state == b"started"), ("", 0))


def ours(rules: Rules, fs: str = "") -> tuple[KnownRule, ...]:
    """Rules of ours, or of one file system, once for all CPTs. Up to 2.16, ``tbf jobid`` prints ``{JOB}`` only."""
    found, partitions = [], len({rule.partition for rule in rules})
    regular = [rule for rule in rules if rule.priority == b"regular"]
    for name in sorted({each.rule_name for each in regular if (
            known := NAME.fullmatch(each.rule_name.decode(errors="replace"))) and fs in {"", known[1]}}):
        same = [rule for rule in regular if rule.rule_name == name]
        alike = len(same) == partitions and len({(rule.condition, rule.rate) for rule in same}) == 1
        condition = re.sub(r"^\{", "jobid={", same[0].condition.decode("ascii", "replace")) if alike else ""
        found.append(KnownRule(name=name.decode(), rate=same[0].rate, classes=sum(rule.classes for rule in same),
                               condition=condition))
    return tuple(found)


def commands(wanted: Sequence[WantedRule], rules: Rules, fs: str = "") -> Iterator[str]:
    """Texts for ``nrs_tbf_rule`` that make the rules of ours those that are wanted. Unsafe ones are left out.

    A rule goes before ``default`` and after all others: a rule of an administrator for the same job comes first.
    """
    asked = {rule.name: rule for rule in wanted if rule.is_safe}
    kept = {rule.name: rule.rate for rule in ours(rules, fs)
            if rule.name in asked and rule.condition == asked[rule.name].condition}
    yield from (f"reg stop {rule.name}" for rule in ours(rules, fs) if rule.name not in kept)
    for name, rule in asked.items():
        if name not in kept:
            yield f"reg start {name} {rule.condition} rate={rule.rate} rank=default"
        elif kept[name] != rule.rate:
            yield f"reg change {name} rate={rule.rate}"
