"""The same counters from ``lustre-exporter`` on other clients, a few of them each time: there may be thousands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from urllib.parse import urlsplit

from tierd.sense.access import SourceError
from tierd.sense.client_counters import ClientCounters, Of
from tierd.sense.exposition import labels_of, samples
from tierd.sense.http import Client, shown

TEXT = ("text/plain",)
ACCEPT = "text/plain; version=0.0.4"
_TABLES = {"rpcs_in_flight_at_send_bucket": "in_flight", "pages_per_rpc_bucket": "pages",
           "modify_rpcs_in_flight_at_send_bucket": "modify"}
_SUMMED = frozenset({"max_rpcs_in_flight", "max_modify_rpcs_in_flight", "targets"})
_BEGINNINGS = (b"lustre_llite_read_ahead_", b"lustre_llite_statahead_",
               *(f"lustre_{kind}_{name}{{".encode() for kind in ("osc", "mdc")
                 for name in (*_TABLES, *_SUMMED, "max_pages_per_rpc")))
_STATAHEAD = {"lustre_llite_statahead_started_total": "started", "lustre_llite_statahead_wrong_total": "wrong",
              "lustre_llite_statahead_hits_total": "hits", "lustre_llite_statahead_misses_total": "misses"}
_READ_AHEAD = {"lustre_llite_read_ahead_hits_total": "hits", "lustre_llite_read_ahead_misses_total": "misses"}
_LIMITS = {"lustre_llite_read_ahead_max_bytes": "read_ahead_bytes",
           "lustre_llite_read_ahead_max_file_bytes": "read_ahead_file_bytes",
           "lustre_llite_statahead_max_entries": "statahead_most"}


def asked(url: str, client: Client) -> list[ClientCounters]:
    """Counters of every mount that one exporter shows now. Raises SourceError."""
    return counters(client.get(url, TEXT, ACCEPT).body, url)


def counters(body: bytes, url: str) -> list[ClientCounters]:
    """Counters of every mount in one exposition. Raises SourceError."""
    taken = _Clients(urlsplit(url).hostname or url)
    try:
        for name, head, tail, value in samples(body, _BEGINNINGS):
            taken.add(name, {**labels_of(head), **labels_of(tail)}, value)
    except ValueError as error:
        raise SourceError(f"{shown(url)}: not to be believed: {error}") from error
    return taken.done()


class _Clients:
    """Samples, sorted by mount."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._mounts: dict[tuple[str, str], ClientCounters] = {}
        self._buckets: defaultdict[tuple[str, str, Of, str, str], dict[float, float]] = defaultdict(dict)
        """By target too, where they are shown by target: their buckets end at different bounds."""
        self._sums: defaultdict[tuple[str, str, str, str, str], float] = defaultdict(float)
        self._pages: dict[tuple[str, str, str, str], float] = {}

    def _mount(self, labels: Mapping[str, str]) -> ClientCounters:
        key = labels["fs"], labels["mount"]
        return self._mounts.setdefault(key, ClientCounters(self._client, key[1], key[0]))

    def add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Take one sample. Raises ValueError for a bound of a bucket that is none."""
        if "fs" not in labels or "mount" not in labels:
            return
        if name in _STATAHEAD:
            self._mount(labels).statahead[_STATAHEAD[name]] = value
        elif name in _READ_AHEAD:
            self._mount(labels).read_ahead[_READ_AHEAD[name]] = value
        elif name == "lustre_llite_read_ahead_events_total":
            self._mount(labels).read_ahead[labels.get("event", "")] = value
        elif name in _LIMITS:
            setattr(self._mount(labels), _LIMITS[name], value)
        elif name.startswith(("lustre_osc_", "lustre_mdc_")):
            self._rpc(name.removeprefix("lustre_")[:3], name[len("lustre_osc_"):], labels, value)

    def _rpc(self, kind: str, name: str, labels: Mapping[str, str], value: float) -> None:
        where, of = (labels["fs"], labels["mount"]), labels.get("pool" if kind == "osc" else "target", "")
        if name in _TABLES:
            direction = "modify" if _TABLES[name] == "modify" else labels.get("direction", "")
            table = "in_flight" if _TABLES[name] == "modify" else _TABLES[name]
            self._mount(labels)
            series = (*where, (kind, of, direction), table, labels.get("target", ""))
            self._buckets[series][float(labels.get("le", "inf"))] = value
        elif name in _SUMMED:
            self._sums[*where, kind, of, name] += value
        elif name == "max_pages_per_rpc":
            self._pages[*where, kind, of] = min(value, self._pages.get((*where, kind, of), value))

    def done(self) -> list[ClientCounters]:
        """All mounts, their histograms no longer cumulative."""
        for (fsname, mount, of, table, _), cumulative in self._buckets.items():
            rpcs = self._mounts[fsname, mount].rpc(of)
            into = rpcs.in_flight if table == "in_flight" else rpcs.pages
            below, last = 0.0, 0
            for upper in sorted(cumulative):
                last = last + 1 if upper == float("inf") else int(upper)  # the kernel's last bucket has no bound
                if cumulative[upper] > below:
                    into[last] = into.get(last, 0.0) + cumulative[upper] - below
                below = cumulative[upper]
            limit = "max_modify_rpcs_in_flight" if of[2] == "modify" else "max_rpcs_in_flight"
            targets = max(self._sums.get((fsname, mount, *of[:2], "targets"), 1.0), 1.0)  # the exporter adds them up
            rpcs.most_in_flight = self._sums.get((fsname, mount, *of[:2], limit), 0.0) / targets
            rpcs.most_pages = 0.0 if of[2] == "modify" else self._pages.get((fsname, mount, *of[:2]), 0.0)
        return list(self._mounts.values())
