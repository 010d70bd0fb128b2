"""All policies: those of tierd and those of other packages.

Another package names its policies in the entry point group ``lustre_tierd.policies``. A new policy of tierd is one file
and one line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tierd.acts import ORDER_KINDS
from tierd.model import Evidence, Finding
from tierd.policies.protocol import Common, ConfiguredPolicy, JudgedBy, Policy, Tables
from tierd.policies.runner import guarded
from tierd.validators import typed_evidence

GROUP = "lustre_tierd.policies"
"""Entry point group of policies in other packages."""
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
"""A kind of finding. With underscores it would have the table of another policy, instead of that one."""
NAMES = (
    "noisy_neighbour",
    "shared_bandwidth",
    "small_random_io",
    "shared_file_contention",
    "outgrown_component",
    "hot_small_files",
    "cold_on_flash",
    "flash_pressure",
    "imbalance",
    "read_ahead",
    "statahead_waste",
    "rpcs_in_flight",
    "rpc_size",
    "omni_path",
    "metadata_storm",
    "metadata_imbalance",
    "metadata_bound",
    "striping",
    "storage_rebuild",
    "block_accelerator",
    "opened_for_writing",
    "data_on_mdt",
)
"""Modules of the policies of tierd, each with its ``POLICY``, in the order of its metrics."""
ELSEWHERE = (
    "tierd.mirrors.policy",
)
"""Policies of other packages of tierd."""
BUILT_IN: tuple[Policy, ...] = tuple(
    import_module(name).POLICY for name in (*(f"tierd.policies.{name}" for name in NAMES), *ELSEWHERE))
UNKNOWN = Policy("")
"""For findings of no policy, and for those whose stored numbers are of another version: nothing is done or judged."""


class PolicyError(ValueError):
    """A policy of another package cannot be used. The message has the reason."""


def available_policies(found: Iterable[EntryPoint]) -> tuple[Policy, ...]:
    """The policies of tierd, then those of other packages by name. Raises PolicyError for one that cannot be used."""
    policies = list(BUILT_IN)
    for entry in sorted(found, key=lambda e: e.name):
        try:
            policy = entry.load()
        except (Exception, SystemExit) as error:  # the module may be a script that ends
            raise PolicyError(f"policy {entry.name} ({entry.value}) cannot be loaded: "
                              f"{type(error).__name__}: {error}") from error
        if why := why_unusable(policy, policies):
            raise PolicyError(f"policy {entry.name} ({entry.value}){why}")
        policies.append(guarded(policy))
    return tuple(policies)


def why_unusable(policy: object, others: Iterable[Policy]) -> str:
    """Why a policy of another package cannot be used beside these, as the end of a sentence; "" if it can."""
    settings: Any = policy.settings if isinstance(policy, Policy) else None
    if not isinstance(policy, Policy) or not isinstance(settings, type) or not issubclass(settings, Common):
        return " is not a tierd.policies.protocol.Policy with settings derived from tierd.policies.protocol.Common"
    if not NAME.fullmatch(str(policy.name)):
        return f": the name {policy.name!r} is not lowercase words with hyphens, such as many-creates"
    if policy.name in ORDER_KINDS or policy.name in {each.name for each in others}:
        return f": the name {policy.name!r} is taken"
    taken = table_types(others)
    if clash := next((name for name, table in policy.tables.items() if taken.get(name, table) is not table), ""):
        return f": the table [{clash}] is of another policy"
    for name, table in {f"detect.{policy.table}": policy.settings, **policy.tables}.items():
        if "__dataclass_fields__" not in vars(table):  # its own: fields of a class without would be no settings
            return f": its settings [{name}] are no class with @dataclass(frozen=True)"
        try:
            table()
        except Exception as error:  # noqa: BLE001 -- a setting without a default, or whatever the class does
            return f": its settings [{name}] have no defaults: {error}"
    return ""


@cache
def policies() -> Mapping[str, Policy]:
    """All policies by name. The entry points are read once. Raises PolicyError."""
    return {policy.name: policy for policy in available_policies(entry_points(group=GROUP))}


def default_policies() -> tuple[ConfiguredPolicy, ...]:
    return tuple(ConfiguredPolicy(policy, policy.settings()) for policy in BUILT_IN if policy.find is not None)


def table_types(known: Iterable[Policy]) -> Mapping[str, type[Any]]:
    """Types of the further tables of settings, by name. Several policies may have one."""
    return {name: table for policy in known for name, table in policy.tables.items()}


def default_tables() -> Tables:
    return Tables({name: table() for name, table in table_types(BUILT_IN).items()})


def acted_on_by_default() -> tuple[str, ...]:
    """Default of ``[act] on``: kinds of tierd's own policies only."""
    return tuple(policy.name for policy in BUILT_IN if policy.on_by_default)


def policy_of(kind: str) -> Policy:
    return policies().get(kind, UNKNOWN)


def policy_for(finding: Finding) -> Policy:
    """The policy of a finding. :data:`UNKNOWN` if the finding lacks the numbers that the policy reads."""
    policy = policy_of(finding.kind)
    return policy if isinstance(finding.evidence, policy.evidence) else UNKNOWN


def evidence_of(kind: str, stored: Mapping[str, float | None]) -> Evidence:
    """The evidence of stored numbers, of the type that the policy of this kind has."""
    return typed_evidence(policy_of(kind).evidence, stored)


def has_victim(finding: Finding) -> bool:
    """Whether the throughput of a victim shows if an act helped. Other findings close when their cause has ended."""
    return policy_for(finding).judged_by is JudgedBy.VICTIM


def kinds_of_slowdowns() -> tuple[str, ...]:
    return tuple(name for name, policy in policies().items() if policy.find_slowed is not None)
