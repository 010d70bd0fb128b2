"""Many exporters asked a few at a time, all by one deadline.

A thread that is still waiting when the deadline has passed is left to its time-out, and its exporter is not asked again
before it has come back: never more than a few threads, however many exporters there are and however they behave.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from tierd.sense.access import SourceError
from tierd.sense.http import shown

Found = TypeVar("Found")
AT_ONCE = 8
"""Threads, and with them answers that are in memory, at the same time. systemd grants the daemon a number of tasks."""


class Parallel(Generic[Found]):
    """Asks, and remembers who has not answered yet."""

    def __init__(self, ask: Callable[[str], Found], deadline_seconds: float) -> None:
        self._ask = ask
        self._deadline_seconds = deadline_seconds
        self._busy: set[str] = set()
        self._turn = threading.Semaphore(AT_ONCE)

    def __call__(self, urls: Sequence[str]) -> tuple[dict[str, Found], dict[str, SourceError]]:
        """What each gave, and why some gave nothing."""
        answers: SimpleQueue[tuple[str, Found | SourceError]] = SimpleQueue()
        troubles: dict[str, SourceError] = {}
        found: dict[str, Found] = {}
        asked = [url for url in dict.fromkeys(urls) if url not in self._busy]
        for url in dict.fromkeys(urls):
            if url in self._busy:
                troubles[url] = SourceError(f"{shown(url)}: has not answered the question before this one yet")
        turns = deque(asked)
        for _ in asked:
            if not self._turn.acquire(blocking=False):
                break
            threading.Thread(target=self._work, args=(turns, answers), name="tierd-scrape", daemon=True).start()
        late = threading.Event()
        timer = threading.Timer(self._deadline_seconds, late.set)
        timer.daemon = True
        timer.start()
        while len(found) + len(troubles) < len(set(urls)) and not late.is_set():
            try:
                url, answer = answers.get(timeout=0.05)
            except Empty:
                continue
            if isinstance(answer, SourceError):
                troubles[url] = answer
            else:
                found[url] = answer
        timer.cancel()
        never = {*turns}
        turns.clear()
        for url in asked:
            if url not in found and url not in troubles:
                what = f"was not asked within {self._deadline_seconds:g} s: others kept silent" if url in never else (
                    f"no answer within {self._deadline_seconds:g} s")
                troubles[url] = SourceError(f"{shown(url)}: {what}")
        return found, troubles

    def _work(self, turns: deque[str], answers: SimpleQueue[tuple[str, Found | SourceError]]) -> None:
        try:
            while True:
                try:
                    url = turns.popleft()
                except IndexError:
                    return
                self._busy.add(url)
                self._one(url, answers)
        finally:
            self._turn.release()

    def _one(self, url: str, answers: SimpleQueue[tuple[str, Found | SourceError]]) -> None:
        try:
            answers.put((url, self._ask(url)))
        except SourceError as error:
            answers.put((url, error))
        except Exception as error:  # noqa: BLE001 -- a bug in reading one answer must not leave the others waiting
            answers.put((url, SourceError(f"{shown(url)}: {type(error).__name__}: {error}")))
        finally:
            self._busy.discard(url)
