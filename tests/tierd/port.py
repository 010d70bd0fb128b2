"""tierd's port over prepared answers, and what it was asked to do."""

import base64
import http.client
import re
import ssl
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from prometheus_client import CollectorRegistry

from httpserver.config import WebConfigFile
from tests.conftest import asked
from tests.operation.page_answers import ANSWERS
from tierd.config.settings import WebSettings
from tierd.daemon.web import App, listen

Answer = tuple[int, str, http.client.HTTPMessage]


def login(user: str, password: str) -> dict[str, Any]:
    """The header of a user."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def request(port: int, path: str, method: str = "GET", body: str | None = None, tls: ssl.SSLContext | None = None,
            **headers: Any) -> Answer:
    """Status, body and headers of an answer."""
    status, found, data = asked(port, path, method, body, tls, **headers)
    return status, data.decode(), found


class Port:
    def __init__(self, web_config: WebConfigFile | None = None, users: tuple[str, ...] = ()) -> None:
        self.answers: dict[str, Any] = dict(ANSWERS)
        self.asked: list[dict[str, Any]] = []
        self.evaluated = 0
        app = App(CollectorRegistry(), self.ask, lambda: True, self.evaluate, users)
        self.server = listen(WebSettings(port=0), app, web_config)
        self.url = f"http://127.0.0.1:{self.server.port}"

    def ask(self, asked: Any) -> Any:
        self.asked.append(dict(asked))
        found = self.answers[asked["request"]]
        if isinstance(found, Exception):
            raise found
        return found

    def evaluate(self) -> None:
        self.evaluated += 1

    def request(self, path: str, method: str = "GET", body: str | None = None, tls: ssl.SSLContext | None = None,
                **headers: Any) -> Answer:
        return request(self.server.port, path, method, body, tls, **headers)

    def post(self, form: dict[str, str], **headers: str) -> tuple[int, str]:
        more: Any = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        status, body, _ = self.request("/do", "POST", urlencode(form, errors="surrogateescape"), **more)
        return status, body

    def token(self, **headers: Any) -> str:
        found = re.search(r'name="token" value="(\w+)"', self.request("/", **headers)[1])
        return found[1] if found else ""


@pytest.fixture
def serving() -> Iterator[Callable[..., Port]]:
    ports: list[Port] = []

    def start(web_config: WebConfigFile | None = None, users: tuple[str, ...] = ()) -> Port:
        ports.append(Port(web_config, users))
        return ports[-1]

    yield start
    for port in ports:
        port.server.close()
