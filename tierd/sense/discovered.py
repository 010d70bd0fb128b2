"""Exporters from all places that name them, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import urlsplit


class Targets(Protocol):
    """A place that names exporters."""

    @property
    def trouble(self) -> str:
        """What is wrong with it, in words; "" when it is well."""

    def __call__(self) -> tuple[str, ...]:
        """URLs, as they are now."""


def url_of(target: str, scheme: str = "http", path: str = "/metrics") -> str:
    """URL of an exporter from ``host:port``. Raises ValueError for what is none.

    >>> url_of("oss1:9169")
    'http://oss1:9169/metrics'
    >>> url_of("oss1:9169/../x")
    Traceback (most recent call last):
    ...
    ValueError: not host:port: 'oss1:9169/../x'
    """
    if scheme not in {"http", "https"}:
        raise ValueError(f"scheme {scheme[:40]!r} is neither http nor https")
    try:
        parts = urlsplit(f"//{target}")
        well = bool(parts.hostname) and parts.netloc == target and "@" not in target and target.isprintable()
        port = parts.port
    except ValueError:
        well, port = False, None
    if not well or " " in target:
        raise ValueError(f"not host:port: {target[:80]!r}")
    whole = target if port is not None else f"{target}:{443 if scheme == 'https' else 80}"
    return f"{scheme}://{whole}{path if path.startswith('/') else '/' + path}"


class Discovered:
    """A fixed list and whatever is discovered beside it."""

    def __init__(self, fixed: Sequence[str], places: Sequence[Targets], say: Callable[[str], None]) -> None:
        self._fixed = fixed
        self._places = places
        self._say = say
        self._said: dict[int, str] = {}
        self._last: frozenset[str] | None = None

    def __call__(self) -> tuple[str, ...]:
        """URLs now, each once. What changed, and what is wrong with a place, is said."""
        urls = dict.fromkeys(self._fixed)
        for number, place in enumerate(self._places):
            urls.update(dict.fromkeys(place()))
            if place.trouble != self._said.get(number, ""):
                self._said[number] = place.trouble
                self._say(f"discovery: {place.trouble}" if place.trouble else "discovery: well again")
        found = frozenset(urls)
        if self._last is not None and found != self._last:
            self._say(f"discovery: {len(found - self._last)} exporters came, {len(self._last - found)} went, "
                      f"{len(found)} are known")
        self._last = found
        return tuple(urls)

    @property
    def trouble(self) -> str:
        """What is wrong with places that name exporters, in words."""
        return "; ".join(filter(None, (place.trouble for place in self._places)))
