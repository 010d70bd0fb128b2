"""Many exporters asked a few at a time, all by one deadline.

A thread that is still waiting when the deadline has passed is left to its time-out, and its exporter is not asked again
before it has come back: never more than a few threads, however many exporters there are and however they behave. Those
that gave nothing when they were asked last have threads of their own: a rack without power keeps nobody waiting.
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
TRIED_AGAIN_AT_ONCE = 4
"""More threads, for exporters that gave nothing last time."""


class Parallel(Generic[Found]):
    """Asks, and remembers who has not answered yet."""

    def __init__(self, ask: Callable[[str], Found], deadline_seconds: float) -> None:
        self._ask = ask
        self._deadline_seconds = deadline_seconds
        self._busy: set[str] = set()
        self._places = threading.Semaphore(AT_ONCE), threading.Semaphore(TRIED_AGAIN_AT_ONCE)
        self._silent: set[str] = set()

    def __call__(self, urls: Sequence[str]) -> tuple[dict[str, Found], dict[str, SourceError]]:
        """What each gave, and why some gave nothing."""
        answers: SimpleQueue[tuple[str, Found | SourceError]] = SimpleQueue()
        troubles: dict[str, SourceError] = {}
        found: dict[str, Found] = {}
        asked = [url for url in dict.fromkeys(urls) if url not in self._busy]
        for url in dict.fromkeys(urls):
            if url in self._busy:
                troubles[url] = SourceError(f"{shown(url)}: has not answered the question before this one yet")
        queues = self._begun(asked, answers)
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
        never = {url for queue in queues for url in queue}
        for queue in queues:
            queue.clear()
        for url in asked:
            if url not in found and url not in troubles:
                what = f"was not asked within {self._deadline_seconds:g} s: others kept silent" if url in never else (
                    f"no answer within {self._deadline_seconds:g} s")
                troubles[url] = SourceError(f"{shown(url)}: {what}")
        self._silent = (self._silent | troubles.keys() - never) & {*urls} - found.keys()
        return found, troubles

    def _begun(self, asked: Sequence[str], answers: SimpleQueue[tuple[str, Found | SourceError]]) -> list[deque[str]]:
        """What nobody has begun to ask yet stays in these."""
        queues = [deque(url for url in asked if (url in self._silent) is silent) for silent in (False, True)]
        for queue, places in zip(queues, self._places, strict=True):
            for _ in range(len(queue)):
                if not places.acquire(blocking=False):
                    break
                worker = threading.Thread(target=self._work, args=(queue, places, answers), name="tierd-scrape")
                worker.daemon = True
                worker.start()
        return queues

    def _work(self, queue: deque[str], places: threading.Semaphore,
              answers: SimpleQueue[tuple[str, Found | SourceError]]) -> None:
        try:
            while True:
                try:
                    url = queue.popleft()
                except IndexError:
                    return
                self._busy.add(url)
                self._one(url, answers)
        finally:
            places.release()

    def _one(self, url: str, answers: SimpleQueue[tuple[str, Found | SourceError]]) -> None:
        try:
            answers.put((url, self._ask(url)))
        except SourceError as error:
            answers.put((url, error))
        except Exception as error:  # noqa: BLE001 -- a bug in reading one answer must not leave the others waiting
            answers.put((url, SourceError(f"{shown(url)}: {type(error).__name__}: {error}")))
        finally:
            self._busy.discard(url)
