"""A headless Chromium, driven over a pipe by the Chrome DevTools Protocol: no further package is needed."""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
           "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe")


class PageError(Exception):
    """The browser refused a command, or a script in the page failed."""


class Browser:
    """One tab. ``errors`` has what the console reported: exceptions, refused loads, violations of the policy."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()
        script = ("import os, sys; r, w = map(os.dup, map(int, sys.argv[1:3])); os.dup2(r, 3); os.dup2(w, 4); "
                  "[os.set_inheritable(number, True) for number in (3, 4)]; os.execv(sys.argv[3], sys.argv[3:])")
        # the browser reads descriptor 3 and writes 4
        self._process = subprocess.Popen(
            [sys.executable, "-c", script, str(to_browser), str(from_browser), CHROMIUM, *OPTIONS,
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._out = os.fdopen(from_us, "wb", buffering=0)
        self._in = os.fdopen(to_us, "rb")
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._out.close()
        self._in.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._in.fileno(), 1 << 20)
            if not piece:
                raise PageError("the browser has ended")
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        self._events.append(message)
        given = message["params"]
        if message["method"] == "Runtime.exceptionThrown":
            self.errors.append(str(given["exceptionDetails"]))
        elif message["method"] == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
        elif message["method"] == "Runtime.consoleAPICalled" and given["type"] in {"error", "assert"}:
            self.errors.append(str(given["args"]))

    def wait_for(self, method: str) -> dict[str, Any]:
        """Wait for an event, also one that has come since the last command of :meth:`open`."""
        while True:
            for number, message in enumerate(self._events):
                if message["method"] == method:
                    del self._events[: number + 1]
                    found: dict[str, Any] = message["params"]
                    return found
            self._next()

    def screen(self, width: int, height: int, *, dark: bool = False, scripts: bool = True) -> None:
        """Size of the window, colour scheme, and whether scripts run."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, url: str) -> None:
        """Load a page."""
        self._events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def login(self, user: str, password: str) -> None:
        """Send a user and password with each request."""
        word = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Basic {word}"})

    def run(self, script: str) -> Any:
        """The value of an expression in the page, or of the promise that it is. Raises PageError."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise PageError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def until(self, script: str, seconds: int = 20) -> None:
        """Wait until an expression is true, at most so long."""
        assert self.run(f"""new Promise(done => {{
            const end = Date.now() + {1000 * seconds};
            const look = () => ({script}) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 20);
            look(); }})"""), script

    def key(self, name: str) -> None:
        """Press a key: ``Tab``, ``Enter``."""
        text = {"Enter": "\r"}.get(name, "")
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode=codes[name])

    def picture(self, path: Path, height: int | None = None) -> None:
        """The page as PNG: its upper part, or all of it."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        part = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height or size["height"]),
                "scale": 1}
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=part)
        path.write_bytes(base64.b64decode(taken["data"]))
