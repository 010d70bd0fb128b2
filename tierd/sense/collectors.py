"""Asks exporters only for the collectors that are needed: those of clients take most of the time of a loaded server.

A URL with a query of its own is left alone. An exporter refuses a request for a collector that is disabled there. It is
then asked once for everything, and its answer names the collectors that it has.

>>> query_for({"jobs", "ost"})
'collect%5B%5D=jobs&collect%5B%5D=ost'
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlencode, urlsplit

from tierd.sense.exposition import ACCEPT_TEXT, TEXT_TYPES
from tierd.sense.http_client import HttpClient, Response, StatusError

_ENABLED = re.compile(rb'^lustre_exporter_collector_success\{collector="(\w+)"\}', re.MULTILINE)
BAD_REQUEST = 400
"""Status of an answer to a request for a collector that the exporter lacks."""


def query_for(names: Collection[str]) -> str:
    """The query that selects these collectors."""
    return urlencode([("collect[]", name) for name in sorted(names)])


class SelectiveClient:
    """Gets the expositions of exporters, with the needed collectors only."""

    def __init__(self, client: HttpClient, needed: Collection[str]) -> None:
        self._client = client
        self._needed = frozenset(needed)
        self._enabled: dict[str, frozenset[str]] = {}
        """The needed collectors that an exporter has, by URL, where it lacks some."""

    def get(self, url: str) -> Response:
        """The exposition. Raises SourceError."""
        if urlsplit(url).query:
            return self._get(url, "")
        try:
            return self._get(url, query_for(self._enabled.get(url, self._needed)))
        except StatusError as error:
            if error.status != BAD_REQUEST:
                raise
        answer = self._get(url, "")
        self._enabled[url] = self._needed & {name.decode() for name in _ENABLED.findall(answer.body)}
        return answer

    def _get(self, url: str, query: str) -> Response:
        return self._client.get(url, TEXT_TYPES, ACCEPT_TEXT, query=query)
