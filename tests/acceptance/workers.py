"""Applications for storms: each writes to files of its own and knows what they must hold."""

import hashlib
import json
import mmap
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from tests.acceptance.site import checksum

LARGEST = 3 << 20


class Application:
    """One process that creates, writes, appends, truncates, maps, replaces and removes."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.directory = directory
        self.held: dict[str, bytes] = {}

    def run(self, until: float, report: Path) -> None:
        """Work until then, and write down the checksum of every file."""
        names = [f"file{n}" for n in range(20)]
        acts: tuple[Callable[[str], None], ...] = (
            self.rewrite, self.append, self.overwrite, self.cut, self.grow,
            self.replace, self.remove, self.map, self.rest,
        )
        while time.time() < until:
            self.random.choice(acts)(self.random.choice(names))
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in self.held.items()}
        report.write_text(json.dumps(digests))

    def some(self) -> bytes:
        return self.random.randbytes(self.random.choice((1, 100, 4096, 65536, 1 << 20)))

    def rewrite(self, name: str) -> None:
        data = self.some()
        (self.directory / name).write_bytes(data)
        self.held[name] = data

    def append(self, name: str) -> None:
        data = self.some()
        with (self.directory / name).open("ab") as file:
            file.write(data)
        self.held[name] = self.held.get(name, b"") + data
        if len(self.held[name]) > LARGEST:
            self.rewrite(name)

    def overwrite(self, name: str) -> None:
        held = self.held.get(name)
        if not held:
            return
        at, data = self.random.randrange(len(held)), self.some()
        with (self.directory / name).open("r+b") as file:
            file.seek(at)
            file.write(data)
        self.held[name] = held[:at] + data + held[at + len(data) :]

    def cut(self, name: str) -> None:
        if name in self.held:
            size = self.random.randrange(len(self.held[name]) + 1)
            os.truncate(self.directory / name, size)
            self.held[name] = self.held[name][:size]

    def grow(self, name: str) -> None:
        if name in self.held:
            size = len(self.held[name]) + 10000
            os.truncate(self.directory / name, size)
            self.held[name] = self.held[name].ljust(size, b"\0")

    def replace(self, name: str) -> None:
        data = self.some()
        new = self.directory / f".{name}.new"
        new.write_bytes(data)
        new.replace(self.directory / name)
        self.held[name] = data

    def remove(self, name: str) -> None:
        if self.held.pop(name, None) is not None:
            (self.directory / name).unlink()

    def map(self, name: str) -> None:
        held = self.held.get(name)
        if not held:
            return
        at = self.random.randrange(len(held))
        with (self.directory / name).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[at] = 42
            mapped.flush()
        self.held[name] = held[:at] + b"*" + held[at + 1 :]

    def rest(self, name: str) -> None:
        """Long enough for a move to come through."""
        time.sleep(self.random.random() * 0.5)


def read_again_and_again(directory: Path, until: float, report: Path) -> None:
    """Read files without writers, and record each file whose content changed."""
    places = sorted(directory.iterdir())
    digests = {place: checksum(place) for place in places}
    wrong = []
    while time.time() < until:
        place = random.choice(places)
        if checksum(place) != digests[place]:
            wrong.append(str(place))
    report.write_text(json.dumps(wrong))


@contextmanager
def running(*jobs: tuple[Callable[..., None], tuple[object, ...]]) -> Iterator[None]:
    """Processes, until they are done; one that failed fails the test."""
    context = get_context("fork")
    processes = [context.Process(target=job, args=arguments) for job, arguments in jobs]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)
