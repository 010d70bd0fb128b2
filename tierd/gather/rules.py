"""How each family of lustre-exporter is combined over nodes, and which labels and jobs its series keep.

A counter or a histogram is always added up. For a gauge the rule depends on its meaning: amounts are added, limits and
sizes that every node reports alike give the largest value, and states where 0 is bad give the smallest.

>>> rule_of("lustre_llite_page_cache_used_bytes").value, rule_of("lustre_osc_max_rpcs_in_flight").value
('sum', 'max')
>>> rule_of("lustre_healthy").value, rule_of("process_open_fds").value
('min', 'drop')
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache


class Rule(Enum):
    """How the values of a gauge are combined."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    DROP = "drop"
    """The family says something about one node only, or is unknown. It is left out."""


MINIMUM = (
    "lustre_healthy", "lustre_exporter_collector_success", "lustre_exporter_filesystem_up",
    "lustre_exporter_path_readable", "lustre_exporter_lustre_loaded",
    "lustre_exporter_web_config_reload_successful", "lustre_lnet_interface_up", "lustre_lnet_peer_up",
    "lustre_lnet_route_up", r"lustre_lnet_(?:interface|peer)_(?:\w+_)?credits",
)  # fmt: skip
"""States in which 0 is bad, and credits, of which the lowest matters."""
MAXIMUM = (
    r"lustre_\w+_max_\w+", r"lustre_\w+_(?:limit|threshold)_\w+", r"lustre_\w+_(?:ratio|min|max|error)",
    r"lustre_\w+_timestamp_seconds", r"lustre_\w+_average_wait_seconds", r"lustre_exporter_\w+_duration_seconds",
    r"lustre_filesystem_\w+", r"lustre_pool_\w+",
    r"lustre_(?:ost|mdt|osd|job|jobs|lod|lfsck|mgs|quota|changelog|hsm)(?:_\w+)?",
    r"lustre_(?:nodemap|osp|service_tbf|service_threads)_\w+", "lustre_mgc_imperative_recovery", "lustre_lnet_routing",
)  # fmt: skip
"""Limits, durations, and what every node reports alike; also the state of targets, which one server reports."""
_MINIMUM = re.compile("|".join(MINIMUM))
_MAXIMUM = re.compile("|".join(MAXIMUM))
_OURS = re.compile(r"lustre_(?!gather_)[a-z0-9_]+")
FAILS_WITH_ITS_NODE = frozenset({"lustre_exporter_collector_success"})
"""Gauges that are 0 if a node that showed them does not answer: its part of the sums stands still."""


@lru_cache(maxsize=4096)
def rule_of(name: str) -> Rule:
    """The rule of a gauge by its name."""
    if not _OURS.fullmatch(name):
        return Rule.DROP
    if _MINIMUM.fullmatch(name):
        return Rule.MIN
    return Rule.MAX if _MAXIMUM.fullmatch(name) else Rule.SUM


def is_gathered(name: str) -> bool:
    """Whether a counter or histogram belongs to lustre-exporter."""
    return _OURS.fullmatch(name) is not None


NODE_LABELS = {"lustre_lnet_interface_": frozenset({"nid"})}
"""Labels that name the node itself, by the beginning of the family's name. The series lose them."""


@lru_cache(maxsize=4096)
def labels_removed(name: str) -> frozenset[str]:
    """The labels that the series of a family lose."""
    found = [labels for beginning, labels in NODE_LABELS.items() if name.startswith(beginning)]
    return found[0] if found else frozenset()


JOB_FAMILIES = frozenset({
    "lustre_llite_read_bytes_total", "lustre_llite_write_bytes_total", "lustre_llite_operations_total",
    "lustre_llite_operation_seconds_total", "lustre_llite_read_ahead_hits_total",
    "lustre_llite_read_ahead_misses_total", "lustre_llite_statahead_started_total",
    "lustre_llite_statahead_wrong_total", "lustre_osc_read_bytes_total", "lustre_osc_write_bytes_total",
    "lustre_osc_requests_total", "lustre_osc_request_wait_seconds_total", "lustre_mdc_requests_total",
    "lustre_mdc_request_wait_seconds_total",
})  # fmt: skip
"""Counters of clients that have a series for each job. They are counters of the slim profile, about 70 series a job."""
JOB_INFO = "lustre_client_job_info"
"""The family in which a node names its job."""
JOBID, NODE_KIND = "jobid", "node_kind"
"""Labels that the gather adds: the job of the nodes, and their kind from the list of nodes."""
OTHER = "other"
"""Value of ``jobid`` for jobs beyond the limit, as in lustre-exporter."""
