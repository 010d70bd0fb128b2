"""In front of every page: user and password, and the headers the web configuration adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from exporter.web.reload import Web
from exporter.web.settings import WebConfig

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


def guarded(app: WSGIApplication, web: Web) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    """The application for those who may see it."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        config = web.config()
        start = _with_headers(start_response, config)
        if config.users is None or config.users.authorised(environ.get("HTTP_AUTHORIZATION", "")):
            return app(environ, start)
        web.deny()
        plain = ("Content-Type", "text/plain; charset=utf-8")
        start("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="lustre-exporter", charset="UTF-8"'), plain])
        return [b"Unauthorized.\n"]

    return answer


def _with_headers(start_response: StartResponse, config: WebConfig) -> StartResponse:
    names = {name.lower() for name, _ in config.headers}

    def start(status: str, headers: list[tuple[str, str]], exc_info: _ExcInfo | None = None, /) -> Any:
        kept = [(name, value) for name, value in headers if name.lower() not in names]
        return start_response(status, [*kept, *config.headers], exc_info)

    return start
