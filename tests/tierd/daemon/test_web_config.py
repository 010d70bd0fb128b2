"""TLS, client certificates and passwords of tierd's port, and their reload."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from httpserver.config import WebConfigFile
from httpserver.serving import BackgroundServer
from tests.operation.page_answers import ANSWERS
from tests.pki import Pki, authority, pki, tls_text, users_text, web_file
from tests.tierd.site import Site
from tierd.__main__ import main
from tierd.config.settings import Settings, WebSettings
from tierd.daemon.service import Service
from tierd.daemon.supervisor import Supervisor
from tierd.daemon.web import MAX_BODY_BYTES, App, config_path, listen

__all__ = ["authority", "pki", "tls_text", "users_text", "web_file"]
pytest.importorskip("bcrypt")
READY = ANSWERS | {"status": ANSWERS["status"] | {"faults": {}, "time": 1.0, "last_cycle": 1.0}}
PAGES = ("/", "/metrics", "/-/healthy", "/-/ready", "/nowhere")
RIGHT, WRONG = ("prometheus", "secret"), ("prometheus", "guess")


class Port:
    """tierd's port over a web configuration, and the requests it received."""

    def __init__(self, web_config: WebConfigFile | None) -> None:
        self.evaluated = 0
        app = App(CollectorRegistry(), lambda request: READY[request["request"]], lambda: True, self.evaluate)
        self.server: BackgroundServer = listen(WebSettings(port=0), app, web_config)

    def evaluate(self) -> None:
        self.evaluated += 1

    def status(self, path: str, method: str = "GET", **options: object) -> int:
        return status(self.server.port, path, method, **options)  # type: ignore[arg-type]


def status(port: int, path: str, method: str = "GET", login: tuple[str, str] | None = None,
           tls: ssl.SSLContext | None = None, body: bytes | None = None) -> int:
    connection = (http.client.HTTPConnection("127.0.0.1", port, timeout=20) if tls is None
                  else http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=tls))
    headers = {} if login is None else {"Authorization": "Basic " + base64.b64encode(":".join(login).encode()).decode()}
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@pytest.fixture
def serving(web_file: Callable[[str], Path]) -> Iterator[Callable[[str | None], Port]]:
    ports: list[Port] = []

    def start(text: str | None) -> Port:
        ports.append(Port(None if text is None else WebConfigFile(web_file(text))))
        return ports[-1]

    yield start
    for port in ports:
        port.server.close()


def test_without_a_web_configuration_no_password_is_needed(serving: Callable[[str | None], Port]) -> None:
    port = serving(None)
    assert [port.status(path) for path in PAGES] == [200, 200, 200, 200, 404]
    assert port.status("/-/evaluate", "POST") == 202
    assert port.evaluated == 1


def test_every_page_and_the_webhook_need_the_password(serving: Callable[[str | None], Port], users_text: str) -> None:
    port = serving(users_text)
    for login in (None, WRONG, ("nobody", "secret")):
        assert {port.status(path, method, login=login) for path in PAGES for method in ("GET", "HEAD")} == {401}
        assert port.status("/-/evaluate", "POST", login=login, body=b"{}") == 401
    assert port.evaluated == 0
    assert [port.status(path, login=RIGHT) for path in PAGES] == [200, 200, 200, 200, 404]
    body = json.dumps({"alerts": ["x" * 200_000]}).encode()
    assert port.status("/-/evaluate", "POST", login=RIGHT, body=body) == 202
    assert port.evaluated == 1


def test_a_message_too_long_starts_no_cycle(serving: Callable[[str | None], Port]) -> None:
    port = serving(None)
    connection = http.client.HTTPConnection("127.0.0.1", port.server.port, timeout=20)
    connection.putrequest("POST", "/-/evaluate")
    connection.putheader("Content-Length", str(MAX_BODY_BYTES + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    assert port.evaluated == 0


def test_tls_and_client_certificates(serving: Callable[[str | None], Port], pki: Pki, tls_text: str) -> None:
    policy = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: pki/ca.crt\n"
    port = serving(tls_text + policy)
    assert port.status("/metrics") == 400  # plain HTTP
    for name in ("", "stranger"):
        with pytest.raises(OSError):  # noqa: PT011 - reset or closed, as the moment has it
            port.status("/-/evaluate", "POST", tls=pki.client(name))
    assert port.evaluated == 0
    assert port.status("/metrics", tls=pki.client("client")) == 200
    assert port.status("/-/evaluate", "POST", tls=pki.client("client")) == 202


@pytest.fixture
def secured(site: Site, web_file: Callable[[str], Path], users_text: str) -> Site:
    site.service.close()
    site.web_config = WebConfigFile(web_file(users_text))
    site.start()
    return site


def port_of(site: Site) -> int:
    assert site.service.web is not None
    return site.service.web.port


def test_passwords_survive_a_reload_of_an_emptied_file(
        secured: Site, web_file: Callable[[str], Path], users_text: str, tmp_path: Path,
        caplog: pytest.LogCaptureFixture) -> None:
    """Each reload of tierd.toml starts a new service. All of them keep the web configuration of the process."""

    def start(settings: Settings) -> Service:
        secured.settings = replace(secured.settings, act=replace(secured.settings.act, mode=settings.act.mode))
        secured.start()
        return secured.service

    secured.service.close()
    config = tmp_path / "tierd.toml"
    config.touch()
    supervisor = Supervisor(config, secured.settings, start, secured.web_config)
    assert status(port_of(secured), "/metrics", login=RIGHT) == 200
    web_file("")
    config.write_text("[act]\nmode = 'observe'\n")
    supervisor.reload()
    assert secured.settings.act.mode == "observe"
    assert "basic_auth_users is missing; restart to serve without passwords" in caplog.text
    assert status(port_of(secured), "/metrics") == 401
    assert status(port_of(secured), "/metrics", login=RIGHT) == 200
    web_file(users_text.replace("prometheus", "grafana"))
    supervisor.reload()
    assert status(port_of(secured), "/metrics", login=RIGHT) == 401
    assert status(port_of(secured), "/metrics", login=("grafana", "secret")) == 200
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
        connection = http.client.HTTPConnection("127.0.0.1", port_of(secured), timeout=20)
        connection.request("GET", "/metrics", headers={"Authorization": "Basic cHJvbWV0aGV1czpzZWNyZXQ="})
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    assert status(port_of(secured), "/metrics") == 401
    assert 'tierd_web_requests_denied_total{fs="lustre"} 1.0' in metrics()
    assert 'tierd_web_config_reload_successful{fs="lustre"} 1.0' in metrics()
    web_file("nonsense: 1\n")
    assert 'tierd_web_config_reload_successful{fs="lustre"} 0.0' in metrics()
    page = (Path(__file__).parents[3] / "docs/operations.md").read_text(encoding="utf-8")
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
    assert f"--web.config.file: {path}:3: basic_auth: unknown setting" in shown
    assert "none.crt: No such file or directory" in shown
    path.write_text("")
    assert not check or main(arguments) == 0
