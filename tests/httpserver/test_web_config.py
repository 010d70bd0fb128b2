"""Over the wire: who gets in, over what, and that a change takes effect without a restart and without a gap."""

import base64
import shutil
import socket

import pytest
from prometheus_client import CollectorRegistry

from httpserver.config import WebConfigFile
from httpserver.connections import Slot, State
from httpserver.metrics import WebConfigMetrics
from httpserver.server import Timeouts

pytest.importorskip("bcrypt")
WAIT = 20.0
NEW = "$2b$04$r7mMLIdezFH1CqytnSf8GeEVjdm4kUw5ENOoJF5zTaN/ORJ408xIy"


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Frame-Options", "sameorigin")])
    return [b"hello"]


def login(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def start(serve, web_file):
    """``start(text)`` serves with that configuration."""

    def start(text: str, **options):
        web = WebConfigFile(web_file(text))
        served = serve(hello, web_config=web, **options)
        return served, web

    return start


def subject(served, pki) -> str:
    """The name in the certificate that is served."""
    plain = socket.create_connection(served.at, timeout=WAIT)
    with pki.client().wrap_socket(plain, server_hostname="127.0.0.1") as secured:
        return str(dict(pair[0] for pair in secured.getpeercert()["subject"])["commonName"])


def value(web: WebConfigFile, name: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(WebConfigMetrics(web, "test_"))
    return registry.get_sample_value(name)


def test_users_and_headers(start, users_text) -> None:
    served, web = start(f"{users_text}http_server_config:\n  headers:\n    X-Frame-Options: deny\n")
    status, headers, body = served.get("/", Authorization=login("prometheus", "secret"))
    assert (status, headers["x-frame-options"], body) == (200, "deny", b"hello")
    refusals = [served.get("/", Authorization=login(*who)) for who in (("prometheus", "no"), ("nobody", "secret"))]
    refusals.append(served.get("/"))
    assert {(status, body) for status, _, body in refusals} == {(401, b"Unauthorized.\n")}
    assert all(headers["www-authenticate"].startswith("Basic") for _, headers, _ in refusals)
    assert value(web, "test_web_requests_denied_total") == 3


def test_a_changed_password_holds_at_once(start, web_file, users_text) -> None:
    served, _ = start(users_text)
    assert served.get("/", Authorization=login("prometheus", "secret"))[0] == 200
    web_file(f"basic_auth_users:\n  prometheus: {NEW}\n")
    assert served.get("/", Authorization=login("prometheus", "secret"))[0] == 401
    assert served.get("/", Authorization=login("prometheus", "new"))[0] == 200


def test_a_renewed_certificate_is_used_without_a_restart(start, pki, tls_text) -> None:
    served, web = start(tls_text)

    assert subject(served, pki) == "server"
    pki.make("server", common_name="renewed")
    assert subject(served, pki) == "renewed"
    shutil.copy(pki.path("client.key"), pki.path("server.key"))  # half a renewal
    assert subject(served, pki) == "renewed"
    assert value(web, "test_web_config_reload_successful") == 0
    shutil.copy(pki.path("client.crt"), pki.path("server.crt"))
    assert subject(served, pki) == "client"
    assert value(web, "test_web_config_reload_successful") == 1


@pytest.mark.parametrize("text", ["", "basic_auth_users: [", "basic_auth_users:\n  prometheus: plain\n", None])
def test_a_bad_file_keeps_the_previous_state_and_is_reported_once(start, web_file, users_text, caplog, text) -> None:
    served, web = start(users_text)
    web_file(text or "").unlink() if text is None else web_file(text)
    for _ in range(3):
        assert served.get("/")[0] == 401
        assert served.get("/", Authorization=login("prometheus", "secret"))[0] == 200
    assert value(web, "test_web_config_reload_successful") == 0
    assert caplog.text.count("cannot load the web configuration") == 1
    web_file(users_text)
    assert served.get("/", Authorization=login("prometheus", "secret"))[0] == 200
    assert value(web, "test_web_config_reload_successful") == 1


def test_a_certificate_is_configured_before_it_exists(start, web_file, pki, tls_text) -> None:
    served, _ = start(tls_text)
    web_file(tls_text.replace("server.", "later."))
    assert served.get("/", tls=pki.client())[0] == 200
    pki.make("later", common_name="later")
    assert subject(served, pki) == "later"


@pytest.mark.parametrize(("policy", "none", "stranger"), [
    ("NoClientCert", True, True),
    ("RequestClientCert", True, True),
    ("RequireAnyClientCert", False, False),
    ("VerifyClientCertIfGiven", True, False),
    ("RequireAndVerifyClientCert", False, False),
])
def test_client_certificates(start, pki, tls_text, policy, none, stranger) -> None:
    authority = "" if policy == "NoClientCert" else "  client_ca_file: pki/ca.crt\n"
    served, _ = start(f"{tls_text}  client_auth_type: {policy}\n{authority}")

    def let_in(name: str) -> bool:
        try:
            return served.get("/", tls=pki.client(name))[0] == 200
        except OSError:
            return False

    assert (let_in("client"), let_in(""), let_in("stranger")) == (True, none, stranger)


@pytest.mark.parametrize(("names", "allowed"), [
    ("client", True), ("'::1'", True), ("spiffe://site/client", True), ("a, b", False),
])  # fmt: skip
def test_names_a_client_certificate_must_carry(start, pki, tls_text, names, allowed) -> None:
    policy = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: pki/ca.crt\n"
    served, _ = start(f"{tls_text}{policy}  client_allowed_sans: [{names}]\n")
    if allowed:
        assert served.get("/", tls=pki.client("client"))[0] == 200
    else:
        with pytest.raises(OSError):  # noqa: PT011 - reset or closed, as the moment has it
            served.get("/", tls=pki.client("client"))


def test_an_http_url_for_an_https_server_is_reported(start, tls_text, pki) -> None:
    served, _ = start(tls_text)
    assert served.get("/")[::2] == (400, b"This is an HTTPS address.\n")


def test_handshakes_that_never_end_hold_up_nobody_and_end(start, pki, tls_text) -> None:
    served, _ = start(tls_text, timeouts=Timeouts(request_seconds=2.0))
    stuck = [socket.create_connection(served.at, timeout=WAIT) for _ in range(10)]
    for client in stuck[::2]:
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
    assert served.get("/", tls=pki.client())[0] == 200
    for client in stuck:
        assert client.recv(1) == b""
        client.close()


def test_a_connection_dropped_before_its_handshake_ends(start, pki, tls_text) -> None:
    served, _ = start(tls_text)
    server, client = socket.socketpair()
    slot = Slot(served.server.connections, server, state=State.DROPPED)
    with client, pytest.raises(ConnectionAbortedError):
        served.server.serve(slot)
    slot.connection.close()


def test_stopping_cuts_a_handshake_short(start, pki, tls_text) -> None:
    served, _ = start(tls_text)
    with socket.create_connection(served.at, timeout=WAIT) as stuck:
        while not served.server.connections.count():
            pass
        assert served.server.connections.drain(WAIT)
        assert stuck.recv(1) in {b"", b"\x15"}  # closed, perhaps with an alert before
