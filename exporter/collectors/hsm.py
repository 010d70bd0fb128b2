"""The HSM coordinator on metadata targets: ``mdt.*.hsm_control``, ``mdt.*.hsm.*``.

The collector does not read the list of all actions (``hsm.actions``), which is on disk and may be long.
"""

from __future__ import annotations

from exporter.collector import Collect, Collector, Context
from exporter.exposition import MetricsPage
from exporter.families import FamilyMaker
from exporter.ledger import Ledger
from exporter.node import Node
from lustre.formats import hsm_agents

STATES = frozenset({b"init", b"enabled", b"stopping", b"stopped", b"disabled"})
OF_MDT = FamilyMaker("lustre_hsm", ("fs", "target"), "mdt.*")
STATE = OF_MDT.of("hsm_control").gauge(
    "coordinator",
    "Always 1. The label is the state of the HSM coordinator. A disabled coordinator accepts requests but starts none.",
    "state")
REQUESTS = OF_MDT.of("hsm.archive_count").gauge(
    "requests", "HSM requests in progress now, by operation.", "operation", versions="2.12+")
MAX_REQUESTS = OF_MDT.of("hsm.max_requests").gauge("max_requests", "Limit on concurrent HSM requests.")
OF_AGENTS = OF_MDT.of("hsm.agents")
AGENTS = OF_AGENTS.gauge("agents", "HSM copytools registered with the coordinator.")
AGENT_REQUESTS = OF_AGENTS.gauge("agent_requests", "HSM requests that copytools are working on now.")
AGENT_REQUESTS_DONE = OF_AGENTS.counter(
    "agent_requests_done", "HSM requests finished by copytools, by result: ok or error.", "result")
OPERATIONS = {f"hsm/{name}_count": b',operation="%b"' % name.encode() for name in ("archive", "restore", "remove")}
_OK, _ERROR = b',result="ok"', b',result="error"'
_KEYS = (_OK, _ERROR)


def start(_: Context) -> Collect:
    done: Ledger[bytes, bytes] = Ledger()

    def collect(node: Node, page: MetricsPage) -> None:
        agents: dict[str, tuple[bytes, tuple[int, int]]] = {}
        targets = node.labelled_targets("mdt")
        for name, labels in targets:
            _coordinator(node, page, name, labels)
            agents |= _agents(node, page, name, labels)
        done.begin({agent: labels for agent, (labels, _) in agents.items()})
        for agent, (_, counted) in agents.items():
            done.credit(agent, b"", _KEYS, counted)
        for _, labels in targets:
            for extra, number in done.totals(labels).items():
                page.sample(AGENT_REQUESTS_DONE, labels + extra, number)

    return collect


def _coordinator(node: Node, page: MetricsPage, name: str, labels: bytes) -> None:
    if (data := node.read("mdt", name, "hsm_control")) is not None:
        state = data.strip()
        if data.endswith(b"\n") and state in STATES:
            page.sample(STATE, labels + b',state="%b"' % state, 1)
        else:
            node.skipped("mdt", "hsm_control", 1)
    for parameter, extra in OPERATIONS.items():
        page.sample(REQUESTS, labels + extra, node.number("mdt", name, parameter))
    page.sample(MAX_REQUESTS, labels, node.number("mdt", name, "hsm/max_requests"))


def _agents(node: Node, page: MetricsPage, name: str, labels: bytes) -> dict[str, tuple[bytes, tuple[int, int]]]:
    """Return the requests finished by each copytool. The sum keeps the requests of a copytool that has left."""
    parsed = node.parsed("mdt", name, "hsm/agents", hsm_agents.parse, may_be_empty=True)
    if parsed is None:
        return {}
    page.sample(AGENTS, labels, len(parsed.rows))
    page.sample(AGENT_REQUESTS, labels, sum([agent.current for agent in parsed.rows]))
    return {f"{name}/{agent.uuid!r}": (labels, (agent.ok, agent.errors)) for agent in parsed.rows}


FAMILIES = (STATE, REQUESTS, MAX_REQUESTS, AGENTS, AGENT_REQUESTS, AGENT_REQUESTS_DONE)
COLLECTOR = Collector("hsm", "coordinator and copytools of hierarchical storage management (HSM)", FAMILIES, start)
