"""Exporters by file and by name: a bad list is reported, and the last good list stays."""

import json
import os
import socketserver
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.tierd.logged import logged
from tests.tierd.sense.clocks import SettableClock
from tierd.sense import discovery
from tierd.sense.discovery import Discovery, DnsTargets, FileTargets


def put(path: Path, text: str) -> None:
    """As a careful writer does it: whole, under another name, then renamed."""
    new = path.with_name(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def test_json_and_yaml_are_read_as_prometheus_reads_them(tmp_path: Path) -> None:
    put(tmp_path / "a.json", json.dumps([{"targets": ["oss1:9169", "[fd00::1]:9169"], "labels": {"rack": "1"}}]))
    put(tmp_path / "b.yml", "- targets: ['mds1:9170']\n  labels: {__scheme__: https, __metrics_path__: /x/metrics}\n")
    put(tmp_path / "c.txt", "nothing of ours")
    targets = FileTargets([f"{tmp_path}/*.json", f"{tmp_path}/*.yml"])
    assert targets() == ("http://oss1:9169/metrics", "http://[fd00::1]:9169/metrics", "https://mds1:9170/x/metrics")
    assert targets.problems == {}


@pytest.mark.parametrize(("name", "text", "words"), [
    ("a.json", "[{", "a.json: "), ("a.yml", "- targets: [", "not YAML"), ("a.yml", "x: 1", "not a list of"),
    ("a.json", '[{"labels": {}}]', "group 1: no list of targets"), ("a.json", '[{"targets": [1]}]', "is not a string"),
    ("a.json", '[{"targets": ["oss1:9169"]}, {"targets": ["http://oss2/"]}]', "not host:port: 'http://oss2/'"),
    ("a.json", '[{"targets": ["user:pw@oss1:1"]}]', "not host:port"),
    ("a.json", '[{"targets": ["a:1"], "labels": {"__scheme__": "file"}}]', "neither http nor https"),
    pytest.param("a.json", "[" * 100_000, "a.json", id="deep"),
    ("a.yml", "!!python/object/apply:os.system [id]", "not YAML"),
])
def test_a_bad_file_is_reported_and_keeps_its_targets(tmp_path: Path, name: str, text: str, words: str) -> None:
    good = json.dumps([{"targets": ["oss1:9169"]}])
    put(tmp_path / name, good)
    targets = FileTargets([f"{tmp_path}/a.*"])
    assert targets() == ("http://oss1:9169/metrics",)
    put(tmp_path / name, text)
    assert targets() == ("http://oss1:9169/metrics",)
    assert words in str(targets.problems)
    assert all(why.endswith("its previous targets are kept") for why in targets.problems.values())
    put(tmp_path / name, good.replace("oss1", "oss2"))
    assert targets() == ("http://oss2:9169/metrics",)
    assert targets.problems == {}


def test_targets_of_a_removed_file_are_dropped(tmp_path: Path) -> None:
    put(tmp_path / "a.json", '[{"targets": ["oss1:9169"]}]')
    targets = FileTargets([f"{tmp_path}/*.json"])
    assert targets()
    (tmp_path / "a.json").unlink()
    assert targets() == ()
    assert "no such file" in str(targets.problems)


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_BYTES", 10)
    put(tmp_path / "a.json", '[{"targets": ["oss1:9169"]}]')
    targets = FileTargets([f"{tmp_path}/*.json"])
    assert targets() == ()
    assert "more than 10 bytes" in str(targets.problems)


@dataclass
class NameServer:
    records: dict[tuple[str, str], Sequence[str]]
    requested: int = 0
    fault: str = ""

    def __call__(self, name: str, kind: str) -> Sequence[str]:
        self.requested += 1
        if self.fault:
            raise OSError(f"{name}: {self.fault}")
        return self.records.get((name, kind), ())


def test_names_are_resolved_again_after_a_while_and_kept_if_nobody_answers() -> None:
    server = NameServer({("_x._tcp.a.org", "SRV"): ["0 5 9169 oss2.a.org.", "0 5 9169 oss1.a.org."],
                         ("mds.a.org", "A"): ["10.0.0.9"]})
    clock = SettableClock()
    targets = DnsTargets(["_x._tcp.a.org", "mds.a.org:9170"], server, clock, 30.0)
    known = ("http://oss1.a.org:9169/metrics", "http://oss2.a.org:9169/metrics", "http://10.0.0.9:9170/metrics")
    assert targets() == known
    requested = server.requested
    clock.at += 29
    assert targets() == known
    assert server.requested == requested
    clock.at += 2
    server.fault = "SERVFAIL"
    assert targets() == known
    assert "SERVFAIL; its previous addresses are kept" in str(targets.problems)
    clock.at -= 500  # the clock went back: asked again, not waited for
    server.fault = ""
    assert targets() == known
    assert targets.problems == {}


@pytest.mark.parametrize(("records", "words"), [
    ({}, "no such records"), ({("_x._tcp.a", "SRV"): ["nonsense"]}, "not an SRV record"),
    ({("_x._tcp.a", "SRV"): ["0 0 80 bad host."]}, "not an SRV record"),
    ({("_x._tcp.a", "SRV"): ["0 0 80 ."]}, "not host:port")])
def test_odd_records_are_reported(records: dict[tuple[str, str], Sequence[str]], words: str) -> None:
    targets = DnsTargets(["_x._tcp.a"], NameServer(records), SettableClock(), 30.0)
    assert targets() == ()
    assert words in str(targets.problems)


@pytest.fixture
def name_server() -> Iterator[tuple[str, int]]:
    """A name server on loopback that knows a zone of two names."""
    message, rrset = pytest.importorskip("dns.message"), pytest.importorskip("dns.rrset")
    zone = {"_x._tcp.a.org.": ("SRV", ["0 5 9169 oss2.a.org.", "0 5 9169 oss1.a.org."]),
            "oss.a.org.": ("A", ["10.0.0.1", "10.0.0.2"])}

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            data, to = self.request
            query = message.from_wire(data)
            name, kind = str(query.question[0].name), query.question[0].rdtype.name
            reply = message.make_response(query)
            if name not in zone:
                reply.set_rcode(3)
            elif zone[name][0] == kind:
                reply.answer.append(rrset.from_text(name, 60, "IN", kind, *zone[name][1]))
            to.sendto(reply.to_wire(), self.client_address)

    with socketserver.UDPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield "127.0.0.1", server.server_address[1]
        server.shutdown()


def test_a_real_question_to_a_name_server(name_server: tuple[str, int]) -> None:
    targets = DnsTargets(["_x._tcp.a.org", "oss.a.org:9169", "none.a.org:1"], discovery.dns_resolver(name_server),
                         SettableClock(), 30.0)
    assert targets() == ("http://oss1.a.org:9169/metrics", "http://oss2.a.org:9169/metrics",
                         "http://10.0.0.1:9169/metrics", "http://10.0.0.2:9169/metrics")
    assert targets.problems["none.a.org:1"].startswith("none.a.org (A): The DNS query name does not exist")


def test_a_name_server_that_does_not_answer_is_an_error() -> None:
    pytest.importorskip("dns")
    with pytest.raises(OSError, match=r"tierd\.invalid"):
        discovery.dns_resolver(("127.0.0.1", 1), 0.2)("tierd.invalid", "A")


@dataclass
class Place:
    urls: tuple[str, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)

    def __call__(self) -> tuple[str, ...]:
        return self.urls


def test_exporters_of_all_sources_are_listed_once_and_changes_are_logged() -> None:
    said = logged()
    place = Place(("b", "a"))
    found = Discovery(["a"], [place])  # type: ignore[list-item]
    assert found() == ("a", "b")
    assert said == []
    place.urls, place.problems = ("c",), {"x": "file x is bad"}
    assert found() == ("a", "c")
    place.problems = {}
    found()
    assert said == ["discovery: file x is bad", "discovery: 1 exporters added, 1 removed, 2 known",
                    "discovery: works again"]
