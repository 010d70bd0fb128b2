"""Lustre on this node as a whole: ``health_check``, ``version``, the job of the node (``jobid_name``), and allocated
memory (``memused``, ``lnet_memused``).
"""

from __future__ import annotations

from exporter.collector import Collector, stateless
from exporter.exposition import Gauge, MetricsPage, label_text
from exporter.node import Node
from lustre.formats import health_check, version

CHECK = "health_check"
HEALTHY = Gauge(
    "lustre_healthy",
    "Whether Lustre's health check on this node passes (1) or fails (0). It fails after a device error or a failed"
    " assertion.", (), CHECK)


def collect_health(node: Node, page: MetricsPage) -> None:
    if (health := node.parsed_global(CHECK, health_check.parse)) is not None:
        page.sample(HEALTHY, b"", None if health.healthy is None else int(health.healthy))


HEALTH_COLLECTOR = Collector("health", "Lustre's own health check", (HEALTHY,), stateless(collect_health))
VERSION = "version"
VERSION_INFO = Gauge(
    "lustre_version_info", "Always 1, labelled with the Lustre release running on this node.", ("version",), VERSION)


def collect_version(node: Node, page: MetricsPage) -> None:
    parsed = node.parsed_global(VERSION, version.parse)
    if parsed is not None and parsed.release is not None:
        page.sample(VERSION_INFO, label_text(version=parsed.release), 1)


VERSION_COLLECTOR = Collector("version", "the running Lustre release", (VERSION_INFO,), stateless(collect_version))
JOB_VARIABLE, JOB_NAME = "jobid_var", "jobid_name"
NODE_LOCAL = b"nodelocal"
"""Value of ``jobid_var`` with which all requests of the node have the job id in ``jobid_name`` (lustre/obdclass/jobid.c
of 2.17). A ``%`` in that name stands for something that differs between processes."""
CLIENT_JOB = Gauge(
    "lustre_client_job_info",
    "Always 1, labelled with the job of this node. It exists where jobid_var is nodelocal, and the prolog of the batch"
    " system writes the job into jobid_name.", ("jobid",), JOB_NAME)


def collect_client_job(node: Node, page: MetricsPage) -> None:
    if (node.read_global(JOB_VARIABLE) or b"").strip() == NODE_LOCAL:
        name = (node.read_global(JOB_NAME) or b"").strip()
        if name and b"%" not in name:
            page.sample(CLIENT_JOB, label_text(jobid=name), 1)


CLIENT_JOB_COLLECTOR = Collector("client_job", "the job of a node that runs one job", (CLIENT_JOB,),
                                 stateless(collect_client_job))
MEMORY = {
    "memused": Gauge("lustre_memory_used_bytes", "Memory allocated by Lustre.", (), "memused"),
    "lnet.lnet_memused": Gauge("lustre_lnet_memory_used_bytes", "Memory allocated by LNet.", (), "lnet.lnet_memused"),
}


def collect_memory(node: Node, page: MetricsPage) -> None:
    for parameter, family in MEMORY.items():
        page.sample(family, b"", node.number_global(parameter))


MEMORY_COLLECTOR = Collector(
    "memory", "memory allocated by Lustre and LNet", tuple(MEMORY.values()), stateless(collect_memory))
