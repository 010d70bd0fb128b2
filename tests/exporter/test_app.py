"""The exporter over HTTP: formats, compression, the landing page, and scrapes that share a pass or wait for it."""

import contextlib
import gzip
import http.client
import os
import socket
import threading

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as text_parser

from exporter import exposition
from exporter.app import App
from exporter.self_metrics import registry
from exporter.single_flight import SingleFlight
from httpserver.server import Address, Server, parse_address

WAIT = 20.0


@pytest.fixture
def served(capture, exporter, serve):
    running = exporter(capture("2.17.57/tree-load-1"))
    return serve(App(running.scraper, registry(running.scraper), "/metrics"))


def test_text_openmetrics_and_gzip(served) -> None:
    status, headers, body = served.get("/metrics", Accept_Encoding="br")
    assert (status, "content-encoding" in headers) == (200, False)
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert len(list(text_parser(body.decode()))) > 100
    _, headers, body = served.get(
        "/metrics", Accept="application/openmetrics-text;version=1.0.0", Accept_Encoding="gzip, deflate"
    )
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert headers["content-encoding"] == "gzip"
    assert len(list(openmetrics_parser(gzip.decompress(body).decode()))) > 100


@pytest.mark.parametrize(("query", "shown", "hidden"), [
    ("collect[]=llite&collect[]=extents", [b"llite_read_bytes_total{"], [b"osc_", b"job_"]),
    ("exclude[]=jobs&exclude[]=llite", [b"osc_"], [b"llite_read_bytes_total{", b"job_"]),
])
def test_collectors_can_be_chosen_by_the_request(served, query, shown, hidden) -> None:
    _, _, body = served.get(f"/metrics?{query}")
    assert all(b"lustre_" + name in body for name in shown)
    assert not any(b"lustre_" + name in body for name in hidden)


@pytest.mark.parametrize(("query", "reason"), [
    ("collect[]=nonsense", b"Unknown or disabled collectors: nonsense.\n"),
    ("exclude[]=osc&collect[]=llite", b"Use either collect[] or exclude[], not both.\n"),
])
def test_an_invalid_selection_of_collectors_is_refused(served, query, reason) -> None:
    status, _, body = served.get(f"/metrics?{query}")
    assert (status, body) == (400, reason)


def test_other_requests(served) -> None:
    assert served.get("/-/healthy")[0] == 200
    assert served.get("/")[1]["content-type"].startswith("text/html")
    assert served.get("/nothing")[0] == 404
    assert served.get("/nothing", method="POST")[0] == 404
    status, headers, _ = served.get("/metrics", method="POST")
    assert (status, headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/metrics", "/", "/-/healthy", "/nothing"])
def test_head_has_the_headers_of_get_and_nothing_else(served, path) -> None:
    status, headers, body = served.get(path, method="HEAD")
    as_got = served.get(path)
    changing = {"date", "content-length"} if path in {"/", "/metrics"} else {"date"}
    assert (status, body) == (as_got[0], b"")
    assert {k: v for k, v in headers.items() if k not in changing} == {
        k: v for k, v in as_got[1].items() if k not in changing
    }


def test_head_reads_no_parameters(served) -> None:
    served.get("/metrics", method="HEAD")
    assert b"not run yet" in served.get("/")[2]


@pytest.mark.parametrize("library", ["isal", "zlib"])
def test_either_library_compresses(served, library, monkeypatch) -> None:
    if library == "zlib":
        monkeypatch.setattr(exposition, "isal_zlib", None)
    elif exposition.isal_zlib is None:  # type: ignore[attr-defined]
        pytest.skip("isal is not installed")
    body = served.get("/metrics", Accept_Encoding="gzip")[2]
    assert gzip.decompress(body).count(b"# TYPE lustre_") > 100


def test_every_address_of_the_machine_is_served(exporter, grow) -> None:
    running = exporter(grow({}))
    app = App(running.scraper, registry(running.scraper), "/metrics")
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with contextlib.closing(Server(Address("", 0), app, name="test")) as server:
        server.start()
        for host in ("127.0.0.1", "::1"):
            connection = http.client.HTTPConnection(host, server.port, timeout=WAIT)
            connection.request("GET", "/-/healthy")
            assert connection.getresponse().read() == b"Healthy.\n"
            connection.close()


def test_a_scrape_that_times_out_reports_it_while_others_run(exporter, serve, grow) -> None:
    root = grow({"sys/fs/lustre/health_check": "healthy\n"})
    parameter = root / "sys/fs/lustre/version"
    os.mkfifo(parameter)
    running = exporter(root, deadline_seconds=WAIT)
    scraped = serve(App(running.scraper, registry(running.scraper), "/metrics"))
    first = threading.Thread(target=lambda: scraped.get("/metrics?collect[]=version"))
    first.start()
    with parameter.open("w") as kernel:  # opens when the first scrape does
        hurried = {"X_Prometheus_Scrape_Timeout_Seconds": "0.6"}
        for same in ("version", "version&collect[]=health"):
            status, _, body = scraped.get(f"/metrics?collect[]={same}", **hurried)
            assert (status, body) == (503, b"Another scrape of these collectors has been running for 0.1 s.\n")
        assert b"lustre_healthy 1" in scraped.get("/metrics?collect[]=health")[2]
        kernel.write("2.17.0\n")
    first.join(WAIT)


@pytest.mark.parametrize("text", ["", "9169", "host", "host:", ":99999", "[::1]", "::1:80", "a:b"])
def test_addresses_that_are_none(text) -> None:
    with pytest.raises(ValueError, match="is not a listen address"):
        parse_address(text)


def test_the_share_of_reused_chunks_is_shown(served) -> None:
    def counts(name: str) -> dict[str, float]:
        lines = served.get("/metrics?collect[]=osc&collect[]=jobs")[2].decode().splitlines()
        found = [line for line in lines if line.startswith(f"lustre_exporter_{name}_total{{")]
        return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in found}

    first, reused = counts("chunks"), counts("chunks_reused")
    later, more = counts("chunks"), counts("chunks_reused")
    for collector in ("osc", "jobs"):
        assert more[collector] - reused[collector] > 0
        assert later[collector] > first[collector]


ALL = frozenset({"llite", "osc"})


def test_a_failed_pass_is_not_shared_and_the_next_has_all_its_time() -> None:
    flight: SingleFlight[float] = SingleFlight()

    def fail(_: float) -> float:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        flight.do(ALL, fail, 20.0)
    assert 0 < flight.do(ALL, lambda left: left, 5.0) <= 5


def test_scrapes_of_one_address_keep_another_waiting_for_one_pass_only() -> None:
    flight: SingleFlight[None] = SingleFlight()
    begun: list[str] = []
    go_on = threading.Event()

    def scrape(name: str, names: frozenset[str], address: str) -> threading.Thread:
        def make(_: float) -> None:
            begun.append(name)
            go_on.wait(20)

        thread = threading.Thread(target=flight.do, args=(names, make, 20.0, address))
        thread.start()
        return thread

    def waiting(count: int) -> None:
        while len(flight._changed._waiters) < count:  # type: ignore[attr-defined]
            threading.Event().wait(0.01)

    threads = [scrape("first", ALL, "crowd")]
    while not begun:
        threading.Event().wait(0.01)
    for number in range(20):
        threads.append(scrape(f"crowd {number}", frozenset({"llite", f"c{number}"}), "crowd"))
        waiting(number + 1)
    threads.append(scrape("prometheus", frozenset({"llite", "jobs"}), "prometheus"))
    waiting(21)
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert begun[:2] == ["first", "prometheus"]
    assert len(begun) == 22
