"""PtlRPC services of this node: ``ost.OSS.*``, ``mds.MDS.*``, ``mgs.MGS.mgs``, ``ldlm.services.*``.

A service is a queue of requests and the threads that process them, shared by all targets of the node. A client also has
a service, ``ldlm_cbd``, for lock callbacks from servers.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.counters import StatsRule
from exporter.exposition import MetricsPage, escape, label_text
from exporter.families import FamilyMaker
from exporter.node import Node
from exporter.sources import Source, stats_renderer
from lustre.formats import nrs_policies, nrs_tbf_rule

PLACES = {"ost/OSS": None, "mds/MDS": None, "mgs/MGS": frozenset({"mgs"}), "ldlm/services": None}
"""Directories of services. Names of services are listed if the directory also has other subdirectories."""
OF_SERVICE = FamilyMaker("lustre_service", ("service",), "ost.OSS.*")
STATS = FamilyMaker("lustre_service", OF_SERVICE.labels, ", ".join(
    f"{kind}.stats" for kind in ("ost.OSS.*", "mds.MDS.*", "mgs.MGS.*", "ldlm.services.*")))
RULE = StatsRule(
    STATS.counter("operations", "Requests processed by the service, by operation.", "operation"),
    STATS.counter(
        "operation_seconds",
        "Total processing time of requests, by operation, without the time they waited. Lustre does not time every"
        " operation.", "operation"),
    special={
        b"req_waittime": (
            STATS.counter("requests", "Requests that the service started to process, all operations."),
            STATS.counter("request_wait_seconds", "Total time requests waited for a service thread."),
        ),
        b"req_qdepth": (
            None,
            STATS.counter(
                "queue_depth_at_start",
                "Sum of the number of unsorted incoming requests, sampled at the start of each request. Divide by"
                " lustre_service_requests_total for the average. Sorted requests wait too: see"
                " lustre_service_queued_requests."),
        ),
        b"req_active": (
            None,
            STATS.counter(
                "active_at_start",
                "Sum of the number of requests in progress, sampled at the start of each request. Divide by"
                " lustre_service_requests_total for the average."),
        ),
        b"req_timeout": (None, None),  # the timeout sent to clients, which is of little use
        b"reqbuf_avail": (None, None),
        b"reqbufs_avail": (None, None),
    },
)
NOW, RULES = OF_SERVICE.of("nrs_policies"), OF_SERVICE.of("nrs_tbf_rule")
QUEUED = NOW.gauge("queued_requests", "Requests waiting for a service thread now, by priority.", "priority")
ACTIVE = NOW.gauge("active_requests", "Requests in progress now, by priority.", "priority")
DEFAULT_POLICY = b"fifo"
POLICY = NOW.gauge(
    "policy_info",
    "Always 1, labelled with a running policy for the order of requests (NRS), and with what it distinguishes, such as"
    " jobid for tbf. The default policy, fifo, is not shown.", "priority", "policy", "by")
POLICY_QUEUED = NOW.gauge(
    "policy_queued_requests",
    "Requests that a running policy for the order of requests (NRS) other than fifo holds back now.", "priority",
    "policy")
MAX_RULES, MAX_CONDITION_BYTES = 200, 300
"""Rules of a service that are shown, the first in the order of evaluation, and bytes of a condition. A choice."""
RULE_RATE = RULES.gauge(
    "tbf_rule_rate",
    "Requests per second that the rule of the token bucket filter (TBF) allows each class of requests, such as a job,"
    " on each CPU partition.", "priority", "rule", "condition")
RULE_CLASSES = RULES.gauge(
    "tbf_rule_classes",
    "Classes of requests, such as jobs, to which the rule of the token bucket filter (TBF) applies now, summed over CPU"
    " partitions.", "priority", "rule")
THREADS = OF_SERVICE.numbers(
    ("threads_started", "threads_started", "Service threads running."),
    ("threads_min", "threads_min", "Minimum number of service threads."),
    ("threads_max", "threads_max", "Maximum number of service threads. If all are busy, requests wait."),
)


def start(_: Context) -> Collect:
    sources = {kind: Source(kind, "stats", stats_renderer(RULE)) for kind in PLACES}

    def collect(node: Node, page: MetricsPage) -> None:
        for kind, only in PLACES.items():
            services = [
                (name, label_text(service=name)) for name, _ in node.devices(kind) if only is None or name in only
            ]
            sources[kind].collect(node, page, services)
            for name, labels in services:
                _queues(node, page, kind, name)
                for parameter, family in THREADS.items():
                    page.sample(family, labels, node.number(kind, name, parameter))

    return collect


def _queues(node: Node, page: MetricsPage, kind: str, name: str) -> None:
    if (parsed := node.parsed(kind, name, "nrs_policies", nrs_policies.parse)) is None:
        return
    for priority in sorted({policy.priority for policy in parsed.rows}):
        labels = label_text(service=name, priority=priority.removesuffix(b"_priority"))
        of_priority = [policy for policy in parsed.rows if policy.priority == priority]
        page.sample(QUEUED, labels, sum([policy.queued for policy in of_priority]))
        page.sample(ACTIVE, labels, sum([policy.active for policy in of_priority]))
        for policy in of_priority:
            if policy.state == b"started" and policy.order != DEFAULT_POLICY:
                named = b'%b,policy="%b"' % (labels, escape(policy.order))
                page.sample(POLICY, b'%b,by="%b"' % (named, escape(policy.argument)), 1)
                page.sample(POLICY_QUEUED, named, policy.queued)
    if any(policy.order == b"tbf" and policy.state == b"started" for policy in parsed.rows):
        _rules(node, page, kind, name)


def _rules(node: Node, page: MetricsPage, kind: str, name: str) -> None:
    if (parsed := node.parsed(kind, name, "nrs_tbf_rule", nrs_tbf_rule.parse)) is None:
        return
    first: dict[tuple[bytes, bytes], nrs_tbf_rule.Rule] = {}
    classes: dict[tuple[bytes, bytes], int] = {}
    for rule in parsed.rows:  # one for each CPT
        key = rule.priority, rule.rule_name
        if len(first) < MAX_RULES or key in first:
            first.setdefault(key, rule)
        classes[key] = classes.get(key, 0) + rule.classes
    for key, rule in first.items():
        labels = label_text(service=name, priority=rule.priority, rule=rule.rule_name)
        page.sample(RULE_RATE, b'%b,condition="%b"' % (labels, escape(rule.condition[:MAX_CONDITION_BYTES])), rule.rate)
        page.sample(RULE_CLASSES, labels, classes[key])


FAMILIES = (*RULE.families(), QUEUED, ACTIVE, POLICY, POLICY_QUEUED, RULE_RATE, RULE_CLASSES, *THREADS.values())
COLLECTOR = Collector("services", "requests, queues and threads of the services of this node", FAMILIES, start)
