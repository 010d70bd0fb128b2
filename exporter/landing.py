"""The landing page: roles of this node, state of each collector, and directories that the exporter may not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from exporter.node import Node, NodeMemory, NodeSnapshot
from exporter.reading import ReadStats
from exporter.scrape import PERMISSION, BusyError, CollectorStatus, LateError, Scraper, WorkerThread
from lustre import __version__
from lustre.parameters import read_whole

SERVER_ROLES = {"obdfilter": "object server", "mdt": "metadata server"}


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """Summary of a node for the landing page."""

    roles: tuple[str, ...]
    version: str
    """Lustre's release; empty if Lustre is not loaded."""
    file_systems: tuple[str, ...]
    mounts: tuple[tuple[str, str], ...]
    """Pairs of file system and mount point; an unknown mount point is empty."""
    targets: tuple[tuple[str, str], ...]
    """Pairs of file system and target, for the targets of this node."""


def summarize_node(memory: NodeMemory) -> NodeSummary:
    """Inspect the node without a request to a server."""
    node, tree = Node(NodeSnapshot(memory), ReadStats()), memory.parameters.tree
    mounts = [(client.device.fsname, client.mount) for client in node.clients("llite")]
    targets = {kind: [(t.device.fsname, t.device.target) for t in node.targets(kind)] for kind in SERVER_ROLES}
    roles = ["client"] if mounts else []
    roles += [role for kind, role in SERVER_ROLES.items() if targets[kind]]
    if node.devices("mgs"):
        roles.append("management server")
    if _text(tree.lnet_path("routes")).startswith(b"Routing enabled"):
        roles.append("router")
    own = sorted({target for of_kind in targets.values() for target in of_kind})
    version = _text(tree.path("version")).decode("utf-8", "replace").strip()
    file_systems = sorted({fs for fs, _ in (*mounts, *own)})
    return NodeSummary(
        tuple(roles), version.removeprefix("lustre:").strip(), tuple(file_systems), tuple(mounts), tuple(own)
    )


def _text(place: str | None) -> bytes:
    if place is None:
        return b""
    try:
        return read_whole(place) or b""
    except OSError:
        return b""


SUMMARY_SECONDS = 2.0
"""Time limit for inspecting the node. After it, the page shows only its other parts."""
MAX_NAMES = 24
"""Limit on listed names, for servers with hundreds of targets."""
HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
)
_STYLE = """\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1em;max-width:56em;overflow-wrap:anywhere}
h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.15em;margin:1.6em 0 .4em}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1em;margin:0}dt{opacity:.7}dd{margin:0}
table{border-collapse:collapse;width:100%}
th,td{padding:.3em .8em .3em 0;text-align:left;border-bottom:1px solid #8884;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}td:first-child{white-space:nowrap}
.bad{color:#c33;font-weight:600}.note{border-left:.3em solid #c80;padding:.1em .8em;margin:1em 0}
nav a{margin-right:1.2em}
@media(max-width:40em){thead{display:none}tr{display:block;padding:.4em 0;border-bottom:1px solid #8884}
td{display:block;border:0;padding:0}td.n{text-align:left;display:inline-block;margin-right:1em}
td:first-child{font-weight:600}td[data-l]::before{content:attr(data-l) " ";opacity:.7}td:empty{display:none}}"""
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lustre exporter</title><style>{style}</style></head>
<body><h1>Lustre exporter</h1>
<nav><a href="{metrics}">Metrics</a><a href="{health}">Health</a></nav>
<h2>This node</h2>
<dl>{node}</dl>
{closed}<h2>Collectors</h2>
<table><thead><tr><th>Collector</th><th>State</th><th class="n">Duration</th><th class="n">Read</th>\
<th class="n">Skipped lines</th><th class="n">Failed reads</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<p>State and duration are of the last scrape; the other columns count since the start. Release {version}.</p>
</body></html>
"""


class LandingPage:
    """The status page, with the state of the last scrape."""

    headers = HEADERS

    def __init__(
        self, scraper: Scraper, telemetry_path: str, health_path: str, limit_seconds: float = SUMMARY_SECONDS
    ) -> None:
        self._scraper = scraper
        self._limit_seconds = limit_seconds
        self._links = {"metrics": escape(telemetry_path), "health": escape(health_path)}
        self._worker: WorkerThread[NodeSummary] = WorkerThread("landing")

    def page(self) -> bytes:
        outcomes = self._scraper.outcomes.items()
        text = _PAGE.format(
            style=_STYLE,
            node="".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in self._node()),
            closed="".join(_unreadable(place) for place in self._scraper.tree.closed().values()),
            rows="\n".join(_row(name, outcome) for name, outcome in outcomes),
            version=escape(__version__),
            **self._links,
        )
        return text.encode("utf-8", "replace")

    def _node(self) -> Iterator[tuple[str, str]]:
        try:
            found = self._worker.run(lambda: summarize_node(self._scraper.memory), self._limit_seconds)
        except (LateError, BusyError, OSError):
            yield "Role", '<span class="bad">unknown; reading a parameter may hang</span>'
            return
        yield "Role", _list(found.roles) or "none; Lustre is not mounted on this node, or not visible to the exporter"
        yield "Lustre", escape(found.version) or "not loaded"
        yield "File systems", _list(found.file_systems) or "none"
        yield "Mounts", _list(tuple([f"{fs} on {path}" if path else fs for fs, path in found.mounts])) or "none"
        yield "Targets", _list(tuple([f"{fs}-{target}" for fs, target in found.targets])) or "none"


def _list(names: tuple[str, ...]) -> str:
    more = len(names) - MAX_NAMES
    return escape(", ".join(names[:MAX_NAMES])) + (f" and {more} more" if more > 0 else "")


def _unreadable(place: str) -> str:
    return (
        f'<p class="note">The exporter lacks permission to read <code>{escape(place)}</code>. The metrics of the'
        f" parameters there are missing. Give the exporter the capability {PERMISSION} (the unit file in"
        " <code>systemd/</code> grants only this), or run it as root.</p>\n"
    )


def _row(name: str, outcome: CollectorStatus) -> str:
    if outcome.reason:
        state = f'<span class="bad">{escape(outcome.reason)}</span>'
    elif not outcome.passes:
        state = "not run yet"
    else:
        state = "metrics found" if outcome.samples else "no metrics on this node"
    numbers = (
        ("duration", f"{outcome.seconds * 1000:.1f} ms" if outcome.passes else ""),
        ("read", _size(outcome.reads.bytes_read) if outcome.passes else ""),
        ("skipped", _counts(outcome.reads.skipped.copy())),
        ("failed", _counts({" ".join(key): times for key, times in outcome.reads.errors.copy().items()})),
    )
    cells = "".join(f'<td class="n" data-l="{label}">{text}</td>' if text else '<td class="n"></td>'
                    for label, text in numbers)  # fmt: skip
    return f"<tr><td>{escape(name)}</td><td>{state}</td>{cells}</tr>"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count / 1e3:.1f} kB"


def _counts(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    return f'<span title="{escape(", ".join(sorted(counts)))}">{sum(counts.values())}</span>'
