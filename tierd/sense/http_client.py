"""HTTP requests to servers whose answers may be wrong: no redirects, no compression, limits on size and time.

An answer that is too large, too slow or of another type raises SourceError with the URL and the reason. urllib3 keeps
connections open for further requests. Environment variables for proxies have no effect.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse, PoolManager, Timeout
from urllib3.exceptions import HTTPError, ReadTimeoutError

from httpserver.config import file_states
from tierd.clock import SystemClock
from tierd.config.sense import ServerAccess
from tierd.text import printable


class SourceError(OSError):
    """A source did not answer, or its answer is invalid. tierd uses nothing of such an answer."""


class StatusError(SourceError):
    """An answer with an unsuccessful status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


MAX_NAMED_ERRORS = 3
"""Errors that one message has in full."""


def summary_of_errors(errors: Sequence[str]) -> str:
    """The first few errors and the number of the others; "" without errors."""
    more = f" (and {len(errors) - MAX_NAMED_ERRORS} more)" if len(errors) > MAX_NAMED_ERRORS else ""
    return "; ".join(errors[:MAX_NAMED_ERRORS]) + more


def read_secret(file: str, variable: str, environment: Mapping[str, str], what: str) -> str:
    """A password or token from a file, or else from an environment variable; "" if neither is configured. Line ends at
    the end of the file are removed. Raises SourceError naming the file or the variable.
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
            # never ask a terminal for it
            context.load_cert_chain(access.cert_file, access.key_file or None, lambda: "")
    except (OSError, ValueError) as error:
        names = ", ".join(filter(None, (access.ca_file, access.cert_file, access.key_file)))
        raise SourceError(f"TLS: {names}: {getattr(error, 'strerror', None) or error}") from error
    return context


SERVERS = 1024
"""Number of servers to which a client keeps connections: a choice. More than a site has servers."""
CONNECTIONS = 16
"""Number of connections to one server that are kept: as many as one server is asked at a time."""


def _pools(**tls: Any) -> PoolManager:
    return PoolManager(SERVERS, maxsize=CONNECTIONS, **tls)


MAX_ERROR_CHARACTERS = 600
"""Maximum length of an error message about a server. Parts of it come from the server."""
_EXPLAINED_BYTES = 300
"""Bytes of the body of an error response that are logged."""
_PIECE_BYTES = 1 << 16
"""Bytes of a body between two looks at the clock: the time-out of a socket limits a single read only."""


@dataclass(frozen=True, slots=True)
class Response:
    """The answer of a server."""

    body: bytes
    date: float | None
    """The server's clock in epoch seconds, in whole seconds; None without a ``Date`` header."""


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

    def __init__(self, access: ServerAccess, timeout_seconds: float,
                 environment: Mapping[str, str] | None = None) -> None:
        self._access = access
        self._timeout_seconds = timeout_seconds
        self._environment = os.environ if environment is None else environment
        self._plain = _pools()
        self._tls: tuple[tuple[object, ...], PoolManager] | None = None
        """The state of the files with certificates, and the connections made with them: certificates are renewed."""
        self._now = SystemClock().monotonic

    def send(self, method: str, url: str, kinds: Sequence[str], body: bytes | None = None,
             headers: Mapping[str, str] = MappingProxyType({}), query: str = "") -> Response:
        """The response, of one of these content types. Raises StatusError and SourceError.
        ``query`` goes after the URL, and errors do not repeat it.
        """
        try:
            pools = self.pools(url)
            sent = {"Accept": ", ".join(kinds), **headers, **authorization_header(self._access, self._environment),
                    "Accept-Encoding": "identity", "User-Agent": "tierd"}  # unpacked, an answer may be far larger
            until = self._now() + self._timeout_seconds
            response = pools.urlopen(method, f"{url}?{query}" if query else url, body=body, headers=sent,
                                     timeout=Timeout(total=self._timeout_seconds),
                                     # credentials go to no other server
                                     redirect=False, retries=False, preload_content=False, decode_content=False,
                                     enforce_content_length=False)  # _body checks it
            with closing(response):
                return self._answer(response, kinds, until)
        except (OSError, ValueError, HTTPError) as error:
            cause = _cause(error)
            words = f"{redacted(url)}: {self._sentence(cause)}"
            raise (StatusError(cause.status, words) if isinstance(cause, StatusError)
                   else SourceError(words)) from error

    def _sentence(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError | ReadTimeoutError):
            return f"no complete answer within {self._timeout_seconds:g} s"
        if isinstance(error, ssl.SSLError):
            return f"TLS: {getattr(error, 'verify_message', '') or error.reason or error}"
        return one_line(getattr(error, "strerror", None) or str(error)) or type(error).__name__

    def pools(self, url: str) -> PoolManager:
        """The pools of connections for a URL. Raises SourceError for an invalid URL and an unreadable certificate. The
        context of TLS is made again when a certificate was replaced. Reading the system's takes 35 ms.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SourceError("not an http or https URL")
        if "@" in parts.netloc:
            raise SourceError("a password in a URL ends up in logs: set user and password_file instead")
        if parts.scheme == "http":
            return self._plain
        files = self._access.ca_file, self._access.cert_file, self._access.key_file
        state = file_states(tuple(Path(file) for file in files if file))
        known = self._tls
        if known is None or known[0] != state:
            known = self._tls = state, _pools(ssl_context=tls_context(self._access))
        return known[1]

    def _answer(self, response: BaseHTTPResponse, kinds: Sequence[str], until: float) -> Response:
        headers = response.headers
        if 300 <= response.status < 400:
            raise SourceError(f"redirects ({response.status}, to {headers.get('Location', '?')!r}): "
                              "configure the final address")
        packed = headers.get("Content-Encoding", "identity")
        if packed != "identity":
            raise SourceError(f"answers with content encoding {packed!r}, which was not requested")
        if response.status != 200:
            why = response.read(_EXPLAINED_BYTES).decode("utf-8", "replace").strip()
            raise StatusError(response.status, f"{response.status} {response.reason}{': ' + why if why else ''}")
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind not in kinds:
            raise SourceError(f"answers with {repr(kind) if kind else 'no content type'} instead of {kinds[0]!r}")
        return Response(self._body(response, until), date_of(headers.get("Date")))

    def _body(self, response: BaseHTTPResponse, until: float) -> bytes:
        most = self._access.max_bytes
        length = response.length_remaining
        if length is not None and length > most:
            raise SourceError(f"an answer of {length} bytes; {most} are allowed (max_bytes)")
        body = bytearray()
        while piece := response.read1(_PIECE_BYTES):
            body += piece
            if len(body) > most:
                raise SourceError(f"an answer of more than {most} bytes, which are allowed (max_bytes)")
            if self._now() > until:
                raise TimeoutError
        if length is not None and len(body) < length:
            raise SourceError(f"the answer ended after {len(body)} of {length} bytes")
        return bytes(body)


def _cause(error: BaseException) -> BaseException:
    """The error of the system, of TLS or of a response, which urllib3 puts into errors of its own."""
    inner = error.__cause__ or next((one for one in error.args if isinstance(one, Exception)), None)
    return _cause(inner) if isinstance(error, HTTPError) and inner is not None else error


def date_of(header: str | None) -> float | None:
    """A server's clock from its Date header, in epoch seconds; None for an invalid header.

    >>> date_of("Wed, 18 Nov 2026 11:06:40 GMT"), date_of("soon"), date_of(None)
    (1795000000.0, None, None)
    """
    try:
        return parsedate_to_datetime(header).timestamp() if header else None
    except (ValueError, TypeError, OverflowError, IndexError, binascii.Error):
        return None
