"""The exporter over HTTP: formats, compression, shared scrapes, the landing page, and an end without a cut."""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import threading

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as text_parser

from exporter import exposition
from exporter.__main__ import check_roots
from exporter.app import App
from exporter.self_metrics import registry
from httpserver.config import ConfigError
from httpserver.server import Address, Server, parse_address

WAIT = 20.0


@pytest.fixture
def served(capture, exporter, serve):
    running = exporter(capture("2.17.57/tree-load-1"))
    return serve(App(running.scraper, registry(running.scraper), "/metrics"))


def test_text_openmetrics_and_gzip(served) -> None:
    status, headers, body = served.get("/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert len(list(text_parser(body.decode()))) > 100
    _, headers, body = served.get(
        "/metrics", Accept="application/openmetrics-text;version=1.0.0", Accept_Encoding="gzip, deflate"
    )
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert headers["content-encoding"] == "gzip"
    assert len(list(openmetrics_parser(gzip.decompress(body).decode()))) > 100


def test_collectors_can_be_chosen_by_the_request(served) -> None:
    _, _, body = served.get("/metrics?collect[]=llite&collect[]=extents")
    assert b"lustre_llite_read_bytes_total{" in body
    assert b"lustre_osc_" not in body
    status, _, body = served.get("/metrics?collect[]=nonsense")
    assert (status, body) == (400, b"Unknown or disabled collectors: nonsense.\n")


def test_the_page_for_people(served) -> None:
    served.get("/metrics")
    status, headers, body = served.get("/")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b'<a href="/metrics">' in body
    assert b"<td>osc</td><td>metrics found</td>" in body
    assert b"<td>extents</td><td>metrics found</td>" in body


def test_other_requests(served) -> None:
    assert served.get("/-/healthy")[0] == 200
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


def test_nothing_is_compressed_unless_requested(served) -> None:
    for header in ("identity", "gzip;q=0", "br"):
        assert "content-encoding" not in served.get("/metrics", Accept_Encoding=header)[1]


@pytest.mark.parametrize("library", ["isal", "zlib"])
def test_either_library_compresses(served, library, monkeypatch) -> None:
    if library == "zlib":
        monkeypatch.setattr(exposition, "isal_zlib", None)
    elif exposition.isal_zlib is None:  # type: ignore[attr-defined]
        pytest.skip("isal is not installed")
    body = served.get("/metrics", Accept_Encoding="gzip")[2]
    assert gzip.decompress(body).count(b"# TYPE lustre_") > 100


def test_many_at_once(served) -> None:
    bodies: list[bytes] = []
    clients = [
        threading.Thread(target=lambda: bodies.append(served.get("/metrics", Accept_Encoding="gzip")[2]))
        for _ in range(50)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join(WAIT)
    assert len(bodies) == 50
    assert all(gzip.decompress(body).endswith(b"\n") for body in bodies)


def test_every_address_of_the_machine_is_served(serve, exporter, grow) -> None:
    running = exporter(grow({}))
    app = App(running.scraper, registry(running.scraper), "/metrics")
    with Server(Address("", 0), app, name="test") as server:
        if server.address_family != socket.AF_INET6:
            pytest.skip("no IPv6 here")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for host in ("127.0.0.1", "::1"):
            connection = http.client.HTTPConnection(host, server.server_port, timeout=WAIT)
            connection.request("GET", "/-/healthy")
            assert connection.getresponse().read() == b"Healthy.\n"
            connection.close()
        server.shutdown()
        thread.join(WAIT)


def test_stopping_waits_for_the_answer_that_has_begun(serve) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(environ, start_response):
        entered.set()
        assert go_on.wait(WAIT)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"whole"]

    busy = serve(slow)
    answers: list[bytes] = []
    client = threading.Thread(target=lambda: answers.append(busy.get("/")[2]))
    client.start()
    assert entered.wait(WAIT)
    busy.server.shutdown()
    assert not busy.server.connections.drain(0.01)
    go_on.set()
    assert busy.server.connections.drain(WAIT)
    client.join(WAIT)
    assert answers == [b"whole"]


def test_a_scrape_that_waits_in_vain_says_so_in_its_time(exporter, serve, tmp_path) -> None:
    parameter = tmp_path / "sys/fs/lustre/version"
    parameter.parent.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    os.mkfifo(parameter)
    running = exporter(tmp_path, deadline_seconds=WAIT)
    scraped = serve(App(running.scraper, registry(running.scraper), "/metrics"))
    first = threading.Thread(target=lambda: scraped.get("/metrics?collect[]=version"))
    first.start()
    with parameter.open("w") as kernel:  # opens when the first scrape does
        hurried = {"X_Prometheus_Scrape_Timeout_Seconds": "0.6"}
        status, _, body = scraped.get("/metrics?collect[]=version", **hurried)
        assert (status, body) == (503, b"Another scrape of these collectors has been running for 0.1 s.\n")
        assert scraped.get("/metrics?collect[]=health")[0] == 200
        kernel.write("2.17.0\n")
    first.join(WAIT)


def test_collectors_can_be_left_out_by_the_request(served) -> None:
    _, _, body = served.get("/metrics?exclude[]=jobs&exclude[]=llite")
    assert b"lustre_osc_" in body
    assert b"lustre_job_" not in body
    assert b"lustre_llite_read_bytes_total{" not in body
    status, _, body = served.get("/metrics?exclude[]=nonsense")
    assert (status, body) == (400, b"Unknown or disabled collectors: nonsense.\n")
    status, _, body = served.get("/metrics?exclude[]=osc&collect[]=llite")
    assert (status, body) == (400, b"Use either collect[] or exclude[], not both.\n")


@pytest.mark.parametrize("text", ["", "9169", "host", "host:", ":99999", "[::1]", "::1:80", "a:b"])
def test_addresses_that_are_none(text) -> None:
    with pytest.raises(ValueError, match="is not a listen address"):
        parse_address(text)


def test_every_missing_root_is_named_at_once(tmp_path) -> None:
    with pytest.raises(ConfigError) as caught:
        check_roots(str(tmp_path / "a"), str(tmp_path), str(tmp_path / "b"))
    assert [sentence.split(":")[0] for sentence in caught.value.sentences] == ["--path.procfs", "--path.debugfs"]


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


def test_a_client_that_asks_for_openmetrics_2_gets_version_1_and_is_told_so(served) -> None:
    _, headers, body = served.get("/metrics", Accept="application/openmetrics-text;version=2.0.0")
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0;")
    assert body.endswith(b"# EOF\n")
    assert len(list(openmetrics_parser(body.decode()))) > 100
