"""TLS, client certificates and passwords of tierd's port, and their reload."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from httpserver.config import WebConfigFile
from tests.pki import Pki
from tests.tierd.port import Port, login, request
from tests.tierd.site import Site, altered
from tierd.__main__ import main
from tierd.config.settings import Settings, WebSettings
from tierd.daemon.service import Service
from tierd.daemon.supervisor import Supervisor
from tierd.daemon.web import MAX_BODY_BYTES, config_path

pytest.importorskip("bcrypt")
PAGES = ("/", "/metrics", "/-/healthy", "/-/ready", "/nowhere")
RIGHT, WRONG = login("prometheus", "secret"), login("prometheus", "guess")
Ready = Callable[..., Port]


def status(site: Site, **headers: Any) -> int:
    assert site.service.web is not None
    return request(site.service.web.port, "/metrics", **headers)[0]


@pytest.fixture
def ready(serving: Callable[..., Port], web_file: Callable[[str], Path]) -> Ready:
    """Starts a port that is ready, over a web configuration."""
    def start(text: str | None = None) -> Port:
        port = serving(None if text is None else WebConfigFile(web_file(text)))
        port.answers["status"] = port.answers["status"] | {"faults": {}, "time": 1.0, "last_cycle": 1.0}
        return port

    return start


def test_without_a_web_configuration_no_password_is_needed(ready: Ready) -> None:
    port = ready()
    assert [port.request(path)[0] for path in PAGES] == [200, 200, 200, 200, 404]
    assert port.request("/-/evaluate", "POST")[0] == 202
    assert port.evaluated == 1


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


def test_tls_and_client_certificates(ready: Ready, pki: Pki, tls_text: str) -> None:
    policy = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: pki/ca.crt\n"
    port = ready(tls_text + policy)
    assert port.request("/metrics")[0] == 400  # plain HTTP
    for name in ("", "stranger"):
        with pytest.raises(OSError):  # noqa: PT011 - reset or closed, as the moment has it
            port.request("/-/evaluate", "POST", tls=pki.client(name))
    assert port.evaluated == 0
    assert port.request("/metrics", tls=pki.client("client"))[0] == 200
    assert port.request("/-/evaluate", "POST", tls=pki.client("client"))[0] == 202


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

    def start(settings: Settings) -> Service:
        secured.settings = altered(secured.settings, act={"mode": settings.act.mode})
        secured.start()
        return secured.service

    secured.service.close()
    config = tmp_path / "tierd.toml"
    config.touch()
    supervisor = Supervisor(config, secured.settings, start, secured.web_config)
    assert status(secured, **RIGHT) == 200
    web_file("")
    config.write_text("[act]\nmode = 'observe'\n")
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


def test_metrics_of_the_web_configuration_are_documented(
        secured: Site, web_file: Callable[[str], Path]) -> None:
    def metrics() -> str:
        assert secured.service.web is not None
        return request(secured.service.web.port, "/metrics", **RIGHT)[1]

    assert status(secured) == 401
    assert 'tierd_web_requests_denied_total{fs="lustre"} 1.0' in metrics()
    assert 'tierd_web_config_reload_successful{fs="lustre"} 1.0' in metrics()
    web_file("nonsense: 1\n")
    assert 'tierd_web_config_reload_successful{fs="lustre"} 0.0' in metrics()
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text(encoding="utf-8")
    names = re.findall(r"^# TYPE (tierd_web\w+) ", metrics(), re.MULTILINE)
    assert [name for name in names if f"`{name}`" not in page] == []


def test_where_the_file_is_named() -> None:
    tierd, option = Path("/etc/tierd/tierd.toml"), Path("web.yml")
    assert config_path(WebSettings(), tierd, None) is None
    assert config_path(WebSettings(config_file="web.yml"), tierd, None) == Path("/etc/tierd/web.yml")
    assert config_path(WebSettings(config_file="/run/web.yml", enabled=False), tierd, None) == Path("/run/web.yml")
    assert config_path(WebSettings(config_file="web.yml"), tierd, option) == option


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("named", ["option", "setting"])
def test_mistakes_are_reported_and_nothing_starts(
        tmp_path: Path, web_file: Callable[[str], Path], capsys: pytest.CaptureFixture[str], named: str,
        check: bool) -> None:
    path = web_file("tls_server_config:\n  cert_file: none.crt\nbasic_auth: {}\n")
    config = tmp_path / "tierd.toml"
    config.write_text("" if named == "option" else "[web]\nconfig_file = 'web.yml'\n")
    arguments = ["--config", str(config), *(["--check-config"] if check else []),
                 *([f"--web.config.file={path}"] if named == "option" else [])]
    assert main(arguments) == 1
    shown = capsys.readouterr().err
    blamed = "--web.config.file" if named == "option" else f"{config}:2: web.config_file" if check else (
        f"{config}: web.config_file")
    assert f"{blamed}: {path}:3: basic_auth: unknown setting" in shown
    assert "none.crt: No such file or directory" in shown
    path.write_text("")
    assert not check or main(arguments) == 0
