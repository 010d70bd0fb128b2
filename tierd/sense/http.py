"""HTTP, asked by somebody who does not trust the answer: no redirects, nothing packed, so many bytes, so many seconds.

A source that answers too much, too slowly or with something else is a SourceError with the URL and the reason, and
never more than its share of memory and time.
"""

from __future__ import annotations

import binascii
import http.client
import os
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from tierd.sense.access import Access, SourceError, credentials, tls_of
from tierd.sense.deadline import Deadline
from tierd.text import printable

CHUNK_BYTES = 1 << 16
MOST_WORDS = 600
"""Of a sentence about a server, which may choose its words."""
_EXPLAINED_BYTES = 300
"""Of the body of an error, for the log."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said."""

    body: bytes
    date: float | None
    """Its own clock, epoch seconds, to a second; None where it does not tell."""
    headers: Mapping[str, str] = field(default_factory=dict)


def shown(url: str) -> str:
    """A URL for logs: without the password somebody may have put into it.

    >>> shown("http://me:secret@host:1/x")
    'http://***@host:1/x'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}").geturl() if "@" in parts.netloc else url


def in_short(words: str) -> str:
    r"""What a server said, or what is said of it, in a log: no more than a line, and no orders for a terminal.

    >>> in_short("500 Oh\x1b[31m"), len(in_short("x" * 5000)) < 700
    ('500 Oh\\x1b[31m', True)
    """
    words = printable(words.strip()[:MOST_WORDS + 1])
    return words if len(words) <= MOST_WORDS else f"{words[:MOST_WORDS]}…"


class Client:
    """Asks servers, with one set of credentials."""

    def __init__(self, access: Access, timeout_seconds: float, environment: Mapping[str, str] | None = None) -> None:
        self._access = access
        self._timeout_seconds = timeout_seconds
        self._environment = os.environ if environment is None else environment

    def get(self, url: str, kinds: Sequence[str], accept: str) -> Answer:
        """What a GET gives, of one of these content types. Raises SourceError, within about the time-out."""
        return self._ask("GET", url, None, kinds, {"Accept": accept})

    def post(self, url: str, form: bytes, kinds: Sequence[str], accept: str) -> Answer:
        """The same, with a form: for questions too long for a URL."""
        return self._ask("POST", url, form, kinds,
                         {"Accept": accept, "Content-Type": "application/x-www-form-urlencoded"})

    def _ask(self, method: str, url: str, body: bytes | None, kinds: Sequence[str],
             headers: Mapping[str, str]) -> Answer:
        try:
            connection = self._connection(url)
            late = Deadline(connection, self._timeout_seconds)
            try:
                path = urlsplit(url)._replace(scheme="", netloc="", fragment="").geturl() or "/"
                connection.request(method, path, body, {
                    **headers, **credentials(self._access, self._environment), "Accept-Encoding": "identity",
                    "User-Agent": "tierd"})
                late.watch()
                with closing(connection.getresponse()) as response:
                    answer = self._answer(response, kinds)
                if late.passed:  # hanging up looks like an end
                    raise SourceError("ended by us")
                return answer
            except (OSError, ValueError, http.client.HTTPException) as error:
                if late.passed:
                    raise SourceError(f"no whole answer within {self._timeout_seconds:g} s") from error
                raise
            finally:
                late.cancel()
                connection.close()
        except SourceError as error:
            raise SourceError(f"{shown(url)}: {in_short(str(error))}") from error
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or error
            raise SourceError(f"{shown(url)}: TLS: {reason}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise SourceError(f"{shown(url)}: {in_short(str(error)) or type(error).__name__}") from error

    def _connection(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SourceError("not an http or https URL")
        if "@" in parts.netloc:
            raise SourceError("a password in a URL ends up in logs: set user and password_file instead")
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self._timeout_seconds)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=self._timeout_seconds,
                                           context=tls_of(self._access))

    def _answer(self, response: http.client.HTTPResponse, kinds: Sequence[str]) -> Answer:
        if 300 <= response.status < 400:
            raise SourceError(f"sends us elsewhere ({response.status}, to {response.getheader('Location', '?')!r}): "
                              "name the final address")
        packed = response.getheader("Content-Encoding", "identity")
        if packed != "identity":
            raise SourceError(f"answers packed with {packed!r}, unasked")
        if response.status != 200:
            said = response.read(_EXPLAINED_BYTES).decode("utf-8", "replace").strip()
            raise SourceError(f"{response.status} {response.reason}{': ' + said if said else ''}")
        kind = response.getheader("Content-Type", "").partition(";")[0].strip().lower()
        if kind not in kinds:
            raise SourceError(f"answers with {kind or 'no content type'!r} in place of {kinds[0]!r}")
        return Answer(self._body(response), date_of(response.getheader("Date")), dict(response.getheaders()))

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        most = self._access.most_bytes
        told = response.length
        if told is not None and told > most:
            raise SourceError(f"an answer of {told} bytes; {most} are allowed (most_bytes)")
        chunks: list[bytes] = []
        size = 0
        while chunk := response.read1(CHUNK_BYTES):
            size += len(chunk)
            if size > most:
                raise SourceError(f"an answer of more than {most} bytes, which are allowed (most_bytes)")
            chunks.append(chunk)
        if told is not None and size < told:
            raise SourceError(f"the answer ended after {size} of {told} bytes")
        return b"".join(chunks)


def date_of(header: str | None) -> float | None:
    """A server's clock from its Date header; None for one that cannot be read.

    >>> date_of("Wed, 18 Nov 2026 11:06:40 GMT"), date_of("soon"), date_of(None)
    (1795000000.0, None, None)
    """
    try:
        return parsedate_to_datetime(header).timestamp() if header else None
    except (ValueError, TypeError, OverflowError, IndexError, binascii.Error):
        return None
