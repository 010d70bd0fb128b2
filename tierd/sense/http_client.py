"""HTTP requests to servers whose answers may be wrong: no redirects, no compression, limits on size and time.

An answer that is too large, too slow or of another type raises SourceError with the URL and the reason.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import os
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tierd.config.sense import ServerAccess
from tierd.text import printable


class SourceError(OSError):
    """A source did not answer, or its answer is invalid. tierd uses nothing of such an answer."""


class StatusError(SourceError):
    """An answer with a status that is no success."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def read_secret(file: str, variable: str, environment: Mapping[str, str], what: str) -> str:
    """A password or token from a file, or else from an environment variable; "" if neither is configured.

    Line ends at the end of the file are removed. Raises SourceError naming the file or the variable.
    """
    if file:
        try:
            found = Path(file).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, ValueError) as error:
            raise SourceError(f"{what}: {file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        where = file
    elif variable:
        found, where = environment.get(variable, ""), f"the environment variable {variable}"
    else:
        return ""
    if not found:
        raise SourceError(f"{what}: {where} is empty or missing")
    if not found.isprintable():  # errors are logged, so the message must not have the secret
        raise SourceError(f"{what}: {where} has several lines or unprintable characters")
    return found


def authorization_header(access: ServerAccess, environment: Mapping[str, str]) -> dict[str, str]:
    """The header with the credentials; empty without credentials. Raises SourceError."""
    if access.user:
        password = read_secret(access.password_file, access.password_env, environment, "password")
        word = base64.b64encode(f"{access.user}:{password}".encode()).decode()
        return {"Authorization": f"Basic {word}"}
    token = read_secret(access.token_file, access.token_env, environment, "token")
    return {"Authorization": f"Bearer {token}"} if token else {}


def tls_context(access: ServerAccess) -> ssl.SSLContext:
    """TLS context with the trusted certificates and the client certificate. Raises SourceError naming the files."""
    try:
        context = ssl.create_default_context(cafile=access.ca_file or None)
        if access.cert_file:
            context.load_cert_chain(access.cert_file, access.key_file or None, lambda: "")
    except (OSError, ValueError) as error:
        names = ", ".join(filter(None, (access.ca_file, access.cert_file, access.key_file)))
        raise SourceError(f"TLS: {names}: {getattr(error, 'strerror', None) or error}") from error
    return context


def file_state(path: str) -> tuple[int, int] | None:
    """What changes when a file is replaced; None for an absent file, whose error the caller reports."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


class ResponseDeadline:
    """Limits the time of a whole response. The timeout of a socket limits a single read only."""

    def __init__(self, connection: HTTPConnection, seconds: float) -> None:
        self._connection = connection
        self._socket: socket.socket | None = None
        self.passed = False
        self._timer = threading.Timer(seconds, self._hang_up)
        self._timer.daemon = True
        self._timer.start()

    def watch(self) -> None:
        """Keep the socket after the request was sent: a response removes it from the connection."""
        self._socket = self._connection.sock

    def cancel(self) -> None:
        """Stop the timer at the end of the request."""
        self._timer.cancel()

    def _hang_up(self) -> None:
        self.passed = True
        held: socket.socket | None = self._socket or self._connection.sock
        if held is not None:
            with suppress(OSError):  # closed meanwhile
                socket.socket.shutdown(held, socket.SHUT_RDWR)


CHUNK_BYTES = 1 << 16
MAX_ERROR_CHARACTERS = 600
"""Maximum length of an error message about a server. Parts of it come from the server."""
_EXPLAINED_BYTES = 300
"""Bytes of the body of an error response that are logged."""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer of a server."""

    body: bytes
    date: float | None
    """The server's clock in epoch seconds, in whole seconds; None without a ``Date`` header."""
    headers: Mapping[str, str] = field(default_factory=dict)


def redacted(url: str) -> str:
    """A URL for logs: without user and password.

    >>> redacted("http://me:secret@host:1/x")
    'http://***@host:1/x'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}").geturl() if "@" in parts.netloc else url


def one_line(words: str) -> str:
    r"""A text about a server for a log: one line, of limited length, without control characters.

    >>> one_line("500 Oh\x1b[31m"), len(one_line("x" * 5000)) < 700
    ('500 Oh\\x1b[31m', True)
    """
    words = printable(words.strip()[:MAX_ERROR_CHARACTERS + 1])
    return words if len(words) <= MAX_ERROR_CHARACTERS else f"{words[:MAX_ERROR_CHARACTERS]}…"


class HttpClient:
    """Sends requests to servers with one set of credentials."""

    def __init__(
        self, access: ServerAccess, timeout_seconds: float, environment: Mapping[str, str] | None = None
    ) -> None:
        self._access = access
        self._timeout_seconds = timeout_seconds
        self._environment = os.environ if environment is None else environment
        self._contexts: dict[tuple[tuple[int, int] | None, ...], ssl.SSLContext] = {}
        """The TLS context, by the state of its files: certificates are renewed. Reading the system's takes 35 ms."""

    def get(self, url: str, kinds: Sequence[str], accept: str, more: Mapping[str, str] | None = None,
            query: str = "") -> Response:
        """The response to a GET, of one of these content types. Raises SourceError within about the timeout.

        ``more`` has further headers. ``query`` goes after the URL, and errors do not repeat it.
        """
        return self._ask("GET", url, None, kinds, {"Accept": accept, **(more or {})}, query)

    def post(self, url: str, form: bytes, kinds: Sequence[str], accept: str) -> Response:
        """The response to a POST of a form, for queries too long for a URL. Raises SourceError as ``get`` does."""
        return self._ask("POST", url, form, kinds,
                         {"Accept": accept, "Content-Type": "application/x-www-form-urlencoded"})

    def send(self, method: str, url: str, body: bytes | None, kinds: Sequence[str],
             headers: Mapping[str, str]) -> Response:
        """The response to any request. Raises StatusError and SourceError."""
        return self._ask(method, url, body, kinds, headers)

    def _ask(self, method: str, url: str, body: bytes | None, kinds: Sequence[str],
             headers: Mapping[str, str], query: str = "") -> Response:
        try:
            connection = self._connection(url)
            late = ResponseDeadline(connection, self._timeout_seconds)
            try:
                path = urlsplit(url)._replace(scheme="", netloc="", fragment="").geturl() or "/"
                connection.request(method, f"{path}?{query}" if query else path, body, {
                    **headers, **authorization_header(self._access, self._environment), "Accept-Encoding": "identity",
                    "User-Agent": "tierd"})
                late.watch()
                with closing(connection.getresponse()) as response:
                    answer = self._answer(response, kinds)
                if late.passed:  # a closed socket looks like the end of the response
                    raise SourceError("closed after the timeout")
                return answer
            except (OSError, ValueError, http.client.HTTPException) as error:
                if late.passed:
                    raise SourceError(f"no complete answer within {self._timeout_seconds:g} s") from error
                raise
            finally:
                late.cancel()
                connection.close()
        except StatusError as error:
            raise StatusError(error.status, f"{redacted(url)}: {one_line(str(error))}") from error
        except SourceError as error:
            raise SourceError(f"{redacted(url)}: {one_line(str(error))}") from error
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or error
            raise SourceError(f"{redacted(url)}: TLS: {reason}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise SourceError(f"{redacted(url)}: {one_line(str(error)) or type(error).__name__}") from error

    def _connection(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SourceError("not an http or https URL")
        if "@" in parts.netloc:
            raise SourceError("a password in a URL ends up in logs: set user and password_file instead")
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self._timeout_seconds)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=self._timeout_seconds,
                                           context=self.tls_context())

    def tls_context(self) -> ssl.SSLContext:
        """The TLS context of all requests, made anew when a certificate was replaced. Raises SourceError."""
        files = self._access.ca_file, self._access.cert_file, self._access.key_file
        state = tuple(map(file_state, files))
        known = self._contexts.get(state)
        if known is None:
            known = tls_context(self._access)
            self._contexts = {state: known}
        return known

    def _answer(self, response: http.client.HTTPResponse, kinds: Sequence[str]) -> Response:
        if 300 <= response.status < 400:
            raise SourceError(f"redirects ({response.status}, to {response.getheader('Location', '?')!r}): "
                              "configure the final address")
        packed = response.getheader("Content-Encoding", "identity")
        if packed != "identity":
            raise SourceError(f"answers with content encoding {packed!r}, which was not requested")
        if response.status != 200:
            said = response.read(_EXPLAINED_BYTES).decode("utf-8", "replace").strip()
            raise StatusError(response.status, f"{response.status} {response.reason}{': ' + said if said else ''}")
        kind = response.getheader("Content-Type", "").partition(";")[0].strip().lower()
        if kind not in kinds:
            raise SourceError(f"answers with {kind or 'no content type'!r} instead of {kinds[0]!r}")
        return Response(self._body(response), date_of(response.getheader("Date")), dict(response.getheaders()))

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        most = self._access.max_bytes
        length = response.length
        if length is not None and length > most:
            raise SourceError(f"an answer of {length} bytes; {most} are allowed (max_bytes)")
        chunks: list[bytes] = []
        size = 0
        while chunk := response.read1(CHUNK_BYTES):
            size += len(chunk)
            if size > most:
                raise SourceError(f"an answer of more than {most} bytes, which are allowed (max_bytes)")
            chunks.append(chunk)
        if length is not None and size < length:
            raise SourceError(f"the answer ended after {size} of {length} bytes")
        return b"".join(chunks)


def date_of(header: str | None) -> float | None:
    """A server's clock from its Date header, in epoch seconds; None for an invalid header.

    >>> date_of("Wed, 18 Nov 2026 11:06:40 GMT"), date_of("soon"), date_of(None)
    (1795000000.0, None, None)
    """
    try:
        return parsedate_to_datetime(header).timestamp() if header else None
    except (ValueError, TypeError, OverflowError, IndexError, binascii.Error):
        return None
