"""Bad answers of servers: an error with the reason, within the limits of time and memory."""

import re
import socket
from pathlib import Path

import pytest

from tests.pki import Pki
from tests.tierd.sense import loopback_server
from tests.tierd.sense.loopback_server import Behave, answers, liar, written
from tierd.clock import SystemClock
from tierd.config.sense import ServerAccess
from tierd.sense.http_client import HttpClient, SourceError

KINDS = ("text/plain",)


def fetch(url: str, access: ServerAccess | None = None, seconds: float = 5.0,
          environment: dict[str, str] | None = None) -> bytes:
    client = HttpClient(access or ServerAccess(max_bytes=1 << 20), seconds, environment or {})
    return client.send("GET", url, KINDS).body


def sends(data: bytes) -> Behave:
    return lambda to, _: to.sendall(data)


@pytest.mark.parametrize(("behave", "words"), [
    (loopback_server.endless, "more than 1048576 bytes"),
    (loopback_server.bomb, "content encoding 'gzip', which was not requested"),
    (answers("x", "text/html"), "'text/html' instead of 'text/plain'"),
    (answers("x", status="500 Oh\x1b[31m"), "500 Oh"),
    (answers("", "text/plain", "Location: http://elsewhere/", status="302 Found"), "redirects (302"),
    (sends(loopback_server.head("text/plain", "200 OK", "Content-Length: 99999999")), "99999999 bytes"),
    (sends(loopback_server.head("text/plain", "200 OK", "Content-Length: 9") + b"x"), "ended after 1 of 9"),
    (sends(b"SSH-2.0-OpenSSH_9.2\r\n"), "SSH-2.0"),
    (sends(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"), "100 headers"),
    (sends(b"HTTP/1.1 500 " + b"\x1b[2J" * 5000 + b"\r\n\r\n"), r"500 \x1b[2J\x1b[2J"),
    (sends(b"HTTP/1.1 99999 Odd\x9b2J\r\n\r\n"), r"99999 Odd\x9b2J"),
    (sends(b"\x00\xff\n" * 20_000), r"\x00"),
    (sends(b""), "closed connection without response"),
])
def test_a_bad_answer_is_an_error_that_says_why(behave: Behave, words: str) -> None:
    with liar(behave) as server, pytest.raises(SourceError) as raised:
        fetch(server.url)
    assert words in str(raised.value)
    assert server.url in str(raised.value)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("behave", [loopback_server.slow_body, loopback_server.silent])
def test_an_answer_that_never_ends_is_given_up(behave: Behave) -> None:
    clock = SystemClock()
    begun = clock.now()
    with liar(behave) as server, pytest.raises(SourceError, match=r"within 0\.3 s|timed out"):
        fetch(server.url, seconds=0.3)
    assert clock.now() - begun < 20


def keeps(to: socket.socket, _: str) -> None:
    """Answers two requests on one connection, then hangs up."""
    for body in (b"1", b"2"):
        to.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\n" + body)
        to.recv(65536)


def test_a_connection_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with liar([keeps, answers("3", "text/plain")]) as server:
        client = HttpClient(ServerAccess(), 5.0, {})
        assert [client.send("GET", server.url, KINDS).body for _ in range(2)] == [b"1", b"2"]
        assert len(server.requests) == 1


@pytest.mark.parametrize(("url", "words"), [
    *((url, "not an http or https URL") for url in ("file:///etc/passwd", "ftp://x/", "oss1:9169", "http://", "")),
    ("http://me:hidden@127.0.0.1:1/m", "a password in a URL ends up in logs"),
    ("http://127.0.0.1:1/m", r"http://127\.0\.0\.1:1/m: Connection refused")])
def test_a_url_that_cannot_be_asked_is_an_error_without_its_password(url: str, words: str) -> None:
    with pytest.raises(SourceError, match=words) as raised:
        fetch(url)
    assert "hidden" not in str(raised.value)


def test_credentials_from_files_and_environment(tmp_path: Path) -> None:
    password = written(tmp_path / "password", "geheim\n")
    with liar(answers("well")) as server:
        assert fetch(server.url, ServerAccess(user="tierd", password_file=password)) == b"well"
        fetch(server.url, ServerAccess(token_file=written(tmp_path / "token", "abc\n")))
        fetch(server.url, ServerAccess(user="tierd", password_env="P"), environment={"P": "geheim"})
        fetch(server.url, ServerAccess(token_env="T"), environment={"T": "abc"})
        fetch(server.url)
    found = [re.search("^Authorization: (.*)\r$", request, re.MULTILINE) for request in server.requests]
    assert [match and match[1] for match in found] == ["Basic dGllcmQ6Z2VoZWlt", "Bearer abc", "Basic dGllcmQ6Z2VoZWlt",
                                                       "Bearer abc", None]


def test_an_unreadable_secret_is_named_and_never_shown(tmp_path: Path) -> None:
    odd = written(tmp_path / "odd", "geheim\nX-Evil: 1\n")
    for access, words in (
        (ServerAccess(token_file=str(tmp_path / "none")), "none cannot be read: No such file"),
        (ServerAccess(token_file=written(tmp_path / "empty", "\n")), "is empty"),
        (ServerAccess(user="u", password_env="NOT_SET"), "the environment variable NOT_SET is empty"),
        (ServerAccess(token_file=odd), "has several lines"),
    ):
        with liar(answers("well")) as server, pytest.raises(SourceError) as raised:
            fetch(server.url, access)
        assert words in str(raised.value)
        assert "geheim" not in str(raised.value)
        assert server.requests == []


def test_the_certificates_are_read_once_and_again_when_they_are_renewed(tmp_path: Path, authority: Pki) -> None:
    """The system's certificates take 35 ms to read, for each request to each of hundreds of exporters."""
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.path("ca.crt").read_bytes())
    client = HttpClient(ServerAccess(ca_file=str(trusted)), 5.0, {})
    first = client.pools("https://oss1")
    assert client.pools("https://oss1") is first
    renewed = tmp_path / "renewed.pem"
    renewed.write_bytes(trusted.read_bytes())
    renewed.replace(trusted)
    assert client.pools("https://oss1") is not first
    trusted.unlink()
    with pytest.raises(SourceError, match="No such file"):
        client.pools("https://oss1")
