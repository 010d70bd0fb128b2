"""tierd over HTTP: its metrics, its health and its page."""

import http.client
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from httpserver.config import WebConfigFile
from tests.tierd.daemon.test_supervisor import starting
from tests.tierd.later import raising
from tests.tierd.port import Port, login, request
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.__main__ import main
from tierd.config.settings import Settings, WebSettings
from tierd.daemon.page import Pages, Viewer
from tierd.daemon.process import Supervisor
from tierd.daemon.web import MAX_BODY_BYTES, config_path


def test_runbooks_open_in_a_browser_even_while_tierd_answers_nothing() -> None:
    silent = raising(AssertionError("a runbook needs no answer of the daemon"))
    pages, folder = Pages(silent), Path(__file__).parents[3] / "docs/runbooks"
    for file in folder.glob("*.md"):
        path = "/runbooks/" if file.stem == "README" else f"/runbooks/{file.stem}"
        body = pages.page(path, {}, Viewer()) or ""
        assert f"<h1>{file.read_text().splitlines()[0].removeprefix('# ')}</h1>" in body
        for link in re.findall(r'href="([A-Za-z]+)\.md"', body):
            assert pages.page(f"/runbooks/{link}.md", {}, Viewer()) is not None
        assert not re.search(r'href="\.\.', body), "links lead to pages that are served"
    for path in ("/runbooks/../index", "/runbooks/Nothing", "/runbooks"):
        assert pages.page(path, {}, Viewer()) is None


def test_metrics_and_health(site: Site) -> None:
    site.run(until=35)
    _, metrics = site.fetched("/metrics")
    families = list(text_string_to_metric_families(metrics))
    assert {s.labels.get("fs") for f in families for s in f.samples if s.name.startswith("tierd_")} == {"lustre"}
    samples = {s.name + json.dumps({k: v for k, v in s.labels.items() if k != "fs"}): s.value
               for f in families for s in f.samples}
    assert samples['tierd_findings_total{"kind": "noisy-neighbour"}'] == 1
    assert samples['tierd_default_layouts_total{"outcome": "done"}'] == 1
    assert samples['tierd_dry_run{}'] == 0
    assert samples['tierd_source_blind{"source": "counters"}'] == 0
    assert samples['tierd_breaker_open{}'] == 0
    assert samples['tierd_refusals_total{"reason": "no-room"}'] == 0
    assert samples['tierd_undone_total{}'] == 0
    assert samples['tierd_last_event_timestamp_seconds{"event": "undo"}'] == 0
    begun = samples['tierd_last_event_timestamp_seconds{"event": "default-layout"}']
    assert site.cluster.epoch - 55 < begun <= site.cluster.epoch
    assert samples["tierd_claim_generation{}"] == 0
    assert samples["tierd_budget_files{}"] > 0
    assert samples["tierd_journal_bytes{}"] > 4096
    assert 0 <= samples["tierd_changelog_lag_seconds{}"] < 30
    assert samples['tierd_changelog_position{"mdt": "MDT0000"}'] > 100
    assert site.fetched("/-/healthy") == (200, "OK\n")
    assert site.fetched("/-/ready") == (200, "OK\n")
    assert site.fetched("/none")[0] == 404
    assert site.fetched("/-/evaluate", "POST")[0] == 202
    assert site.fetched("/", "POST")[0] == 405
    assert site.fetched("/-/evaluate") == (405, "GET, or POST to /-/evaluate\n")


def test_a_hanging_cycle_does_not_feed_the_watchdog(site: Site) -> None:
    site.run(until=35)
    assert site.service.beat()
    site.cluster.stop(STREAM.job_id)  # the rest is only waiting
    site.cluster.stop(NOISE.job_id)
    (observe,) = [activity for activity in site.service.activities.all if activity.driven]
    observe.begun_at = site.service.node.clock.now()
    site.cluster.advance(600)
    assert site.service.beat()
    assert site.fetched("/-/healthy")[0] == 200
    site.cluster.advance(400)
    assert not site.service.beat()
    assert site.fetched("/-/healthy")[0] == 503
    observe.begun_at = 0.0
    assert site.service.beat()


# Passwords of tierd's port, and their reload


pytest.importorskip("bcrypt")
PAGES = ("/", "/metrics", "/-/healthy", "/-/ready", "/nowhere")
RIGHT, WRONG = login("prometheus", "secret"), login("prometheus", "guess")
Ready = Callable[..., Port]


def status(site: Site, **headers: Any) -> int:
    return request(site.service.web.port, "/metrics", **headers)[0]


@pytest.fixture
def ready(serving: Callable[..., Port], web_file: Callable[[str], Path]) -> Ready:
    """Starts a port that is ready, over a web configuration."""
    def start(text: str | None = None) -> Port:
        port = serving(None if text is None else WebConfigFile(web_file(text)))
        port.answers["status"] = port.answers["status"] | {"faults": {}, "time": 1.0, "last_cycle": 1.0}
        return port

    return start


def test_an_odd_request_is_no_fault_of_tierd(ready: Ready, caplog: pytest.LogCaptureFixture) -> None:
    assert ready().request("/jobs?" + "a=1&" * 60)[0] == 400
    assert ready().request("/metrics", Accept="text/plain;version=new")[0] == 200
    assert caplog.text == ""


def test_every_page_and_the_webhook_need_the_password(ready: Ready, users_text: str) -> None:
    port = ready(users_text)
    for headers in ({}, WRONG, login("nobody", "secret")):
        assert {port.request(path, method, **headers)[0] for path in PAGES for method in ("GET", "HEAD")} == {401}
        assert port.request("/-/evaluate", "POST", "{}", **headers)[0] == 401
    assert port.evaluated == 0
    assert [port.request(path, **RIGHT)[0] for path in PAGES] == [200, 200, 200, 200, 404]
    body = json.dumps({"alerts": ["x" * 200_000]})
    assert port.request("/-/evaluate", "POST", body, **RIGHT)[0] == 202
    assert port.evaluated == 1


def test_a_message_too_long_starts_no_cycle(ready: Ready) -> None:
    port = ready()
    connection = http.client.HTTPConnection("127.0.0.1", port.server.port, timeout=20)
    connection.putrequest("POST", "/-/evaluate")
    connection.putheader("Content-Length", str(MAX_BODY_BYTES + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    assert port.evaluated == 0


@pytest.fixture
def secured(site: Site, web_file: Callable[[str], Path], users_text: str) -> Site:
    site.service.close()
    site.web_config = WebConfigFile(web_file(users_text))
    site.start()
    return site


def test_passwords_survive_a_reload_of_an_emptied_file(
        secured: Site, web_file: Callable[[str], Path], users_text: str, tmp_path: Path,
        caplog: pytest.LogCaptureFixture) -> None:
    """Each reload of tierd.toml starts a new service. All of them keep the web configuration of the process."""
    secured.service.close()
    config = tmp_path / "tierd.toml"
    config.touch()
    supervisor = Supervisor(config, secured.settings, starting(secured), secured.web_config)
    assert status(secured, **RIGHT) == 200
    web_file("")
    config.write_text(f"[act]\nmode = 'observe'\njournal = '{secured.settings.act.journal}'\n")
    supervisor.reload()
    assert secured.settings.act.mode == "observe"
    assert "basic_auth_users is missing; restart to serve without passwords" in caplog.text
    assert status(secured) == 401
    assert status(secured, **RIGHT) == 200
    web_file(users_text.replace("prometheus", "grafana"))
    supervisor.reload()
    assert status(secured, **RIGHT) == 401
    assert status(secured, **login("grafana", "secret")) == 200
    supervisor.close()


def test_another_file_needs_a_restart(secured: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A reload that took up other settings, but not this one, could open the port without a password."""
    config = tmp_path / "tierd.toml"
    config.touch()
    supervisor = Supervisor(config, Settings(), lambda _: secured.service, secured.web_config)
    config.write_text("[web]\nconfig_file = 'web.yml'\naddress = ''\n")
    supervisor.reload()
    assert "a change of web.config_file needs a restart" in caplog.text
    assert supervisor.settings == Settings()


def test_every_metric_is_documented_also_those_of_the_web_configuration(secured: Site) -> None:
    assert status(secured) == 401
    metrics = request(secured.service.web.port, "/metrics", **RIGHT)[1]
    assert 'tierd_web_requests_denied_total{fs="lustre"} 1.0' in metrics
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text(encoding="utf-8")
    names = set(re.findall(r"^# TYPE (tierd_\w+) ", metrics, re.MULTILINE))
    assert len(names) > 35
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_where_the_file_is_named() -> None:
    tierd = Path("/etc/tierd/tierd.toml")
    assert config_path(WebSettings(), tierd) is None
    assert config_path(WebSettings(config_file="web.yml"), tierd) == Path("/etc/tierd/web.yml")
    assert config_path(WebSettings(config_file="/run/web.yml", enabled=False), tierd) == Path("/run/web.yml")


@pytest.mark.parametrize("check", [True, False])
def test_mistakes_are_reported_with_those_of_the_settings_and_nothing_starts(
        tmp_path: Path, web_file: Callable[[str], Path], capsys: pytest.CaptureFixture[str], check: bool) -> None:
    path = web_file("tls_server_config:\n  cert_file: none.crt\nbasic_auth: {}\n")
    config, good = tmp_path / "tierd.toml", "[web]\nconfig_file = 'web.yml'\n"
    config.write_text(f"{good}[act]\nmod = 2\n")
    arguments = ["--config", str(config), *(["--check-config"] if check else [])]
    assert main(arguments) == 1
    shown = capsys.readouterr().err
    assert "act.mod: unknown setting" in shown
    assert f"{config}:2: web.config_file: {path}:3: basic_auth: unknown setting" in shown
    assert "none.crt: No such file or directory" in shown
    path.write_text("")
    config.write_text(good)
    assert not check or main(arguments) == 0
