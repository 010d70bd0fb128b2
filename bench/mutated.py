"""``python -m bench.mutated``: scrapes of damaged parameter trees, with the C modules and without.

Every tree is a recorded one in which files were damaged: numbers replaced, bytes changed, lines repeated or removed,
files cut, emptied, replaced by directories or broken links, devices removed or renamed. Exporters with and without the
C modules read the same folder over HTTP, each with three sets of flags. A tree is read twice, the second time after
more damage, so that sums and reused lines are compared too. The bench fails if an exporter ends or answers with a
status other than 200, if a collector fails, or if the samples of two exporters with equal flags differ.
"""

from __future__ import annotations

import argparse
import difflib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.exporter import memory_folder
from bench.soak import free_port
from bench.without_c import MODULES
from lustre.unpack import unpack

CAPTURES = Path(__file__).parent.parent / "tests" / "captures" / "2.17.57"
RECORDINGS = ("tree-load-1", "tree-load-2", "tree-idle")
FLAGS: tuple[tuple[str, ...], ...] = (
    (),
    ("--collector.osc.per-target", "--collector.osp.per-target", "--collector.osd_latency", "--collector.osc_latency"),
    ("--jobs.limit=3", "--quota.limit=2", "--collector.exports"),
)
OWN = re.compile(rb"^(?:# (?:HELP|TYPE) )?(?:lustre_exporter_|process_|python_)")
FAILED = re.compile(rb'^lustre_exporter_collector_success\{collector="([^"]*)"\} 0', re.MULTILINE)
NUMBERS = (b"0", b"1", b"-1", b"7", b"00", b"1e9", b"18446744073709551615", b"9223372036854775807", b"9" * 25, b"nan")
JUNK = (b"", b"\x00", b"\xff\xfe", b" ", b"\n", b":", b"}", b"{", b'"', b"\\", b"\x01\x06", "é".encode(), b"x" * 300)
NAMES = ("a b", 'q"', "b\\n", "n\nl", "ü", "-", "OSTzzzz", "lustre-OST0001-osc", "x" * 120)
START_SECONDS = 30.0
ANSWER_SECONDS = 60.0


def other_numbers(text: bytes, chance: random.Random) -> bytes:
    """Replace some numbers."""
    return re.sub(rb"\d+", lambda found: chance.choice(NUMBERS) if chance.random() < 0.1 else found[0], text)


def grown(text: bytes, chance: random.Random) -> bytes:
    """Let some numbers grow, as a kernel does."""
    return re.sub(rb"(?<![\w.])\d{1,12}(?![\w.])", lambda found: b"%d" % (int(found[0]) + chance.randrange(99)), text)


def other_bytes(text: bytes, chance: random.Random) -> bytes:
    """Replace some bytes."""
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(JUNK) + text[at + chance.randrange(30) :]
    return text


def other_lines(text: bytes, chance: random.Random) -> bytes:
    """Remove, repeat and exchange lines."""
    lines = text.splitlines(keepends=True) or [b"\n"]
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(lines))
        lines[at : at + 1] = chance.choice(([], [lines[at]] * chance.choice((2, 90)), [chance.choice(lines)])) or [b""]
    return b"".join(lines)


def shorter(text: bytes, chance: random.Random) -> bytes:
    """Cut a text anywhere."""
    return text[: chance.randrange(len(text) + 1)]


def binary(_: bytes, chance: random.Random) -> bytes:
    """Return any bytes."""
    return chance.randbytes(chance.choice((1, 100, 70_000)))


def long_line(text: bytes, chance: random.Random) -> bytes:
    """Make a name too long for a template."""
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice((b"n", b"\xff", b"\\")) * chance.choice((20_000, 70_000)) + text[at:]


TEXTS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    other_numbers, other_numbers, grown, grown, grown, other_bytes, other_bytes, other_lines, shorter, binary,
    long_line,
)  # fmt: skip


def damage(root: Path, chance: random.Random) -> None:
    """Damage a tree."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    for path in chance.sample(files, min(len(files), chance.choice((3, 40, 400)))):
        if path.exists():
            path.write_bytes(chance.choice(TEXTS)(path.read_bytes(), chance))
    for path in chance.sample(files, chance.choice((0, 0, 3, 10))):
        if path.exists():
            damage_path(path, chance.randrange(4))
    folders = sorted(path for path in root.rglob("*-*") if path.is_dir())
    for path in chance.sample(folders, min(len(folders), chance.choice((0, 0, 1, 4)))):
        if path.exists() and chance.random() < 0.5:
            path.unlink() if path.is_symlink() else shutil.rmtree(path)
        elif path.exists():
            path.rename(path.with_name(path.name.rpartition("-")[0] + "-" + chance.choice(NAMES)))


def damage_path(path: Path, how: int) -> None:
    """Remove a file, empty it, or replace it by a directory or a broken link."""
    path.unlink()
    if how == 1:
        path.touch()
    elif how == 2:
        path.mkdir()
    elif how == 3:
        path.symlink_to("gone")


@dataclass(frozen=True)
class Exporter:
    """A running exporter."""

    flags: tuple[str, ...]
    hidden: bool
    """Whether it runs without the C modules."""
    port: int
    process: subprocess.Popen[bytes]

    def scrape(self) -> bytes:
        """Return its samples. Raises ValueError if it ended, failed or has a collector that failed."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=ANSWER_SECONDS) as answer:
                text: bytes = answer.read()
        except OSError as error:
            raise ValueError(f"{self}: {error}, exit status {self.process.poll()}") from error
        if failed := FAILED.findall(text):
            raise ValueError(f"{self}: collectors failed: {b', '.join(failed).decode()}")
        return b"".join([line for line in text.splitlines(keepends=True) if not OWN.match(line)])

    def __str__(self) -> str:
        """Name of the exporter in messages."""
        return f"exporter {' '.join(self.flags)} {'without' if self.hidden else 'with'} C"


@contextmanager
def running(root: Path, flags: tuple[str, ...], hidden: bool) -> Iterator[Exporter]:
    """Start an exporter."""
    port = free_port()
    hide = f"sys.modules.update(dict.fromkeys({MODULES!r})); " if hidden else ""
    program = f"import sys; {hide}from exporter.__main__ import main; sys.exit(main(sys.argv[1:]))"
    places = [f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys", f"--web.listen-address=127.0.0.1:{port}"]
    command = [sys.executable, "-c", program, "--log.level=error", *places, *flags]
    with subprocess.Popen(command) as process:
        try:
            exporter = Exporter(flags, hidden, port, process)
            wait_for(exporter)
            yield exporter
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def wait_for(exporter: Exporter) -> None:
    """Wait until an exporter answers."""
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/-/healthy", timeout=1).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            if exporter.process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def compare(exporters: Sequence[Exporter]) -> tuple[int, list[str]]:
    """Scrape all exporters. Returns the number of samples and the differences of those with equal flags."""
    differences: list[str] = []
    samples = 0
    for with_c, without in zip(exporters[::2], exporters[1::2], strict=True):
        texts: list[bytes] = []
        for exporter in (with_c, without):  # both, because a pass changes what the next one searches for
            try:
                texts.append(exporter.scrape())
            except ValueError as error:
                differences.append(str(error))
        if len(texts) < 2:
            continue
        samples += texts[0].count(b"\n")
        if texts[0] != texts[1]:
            one, other = [text.decode("utf-8", "replace").splitlines() for text in texts]
            found = [line[:200] for line in difflib.unified_diff(one, other, "with C", "without C", n=0, lineterm="")]
            differences.append("\n".join([f"{with_c} and without differ", *found[:12]]))
    return samples, differences


def main() -> int:
    """Compare all trees. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutated", description=__doc__.partition("\n")[0])
    parser.add_argument("--trees", type=int, default=200, help="number of damaged trees; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the damage; default: %(default)s")
    parser.add_argument("--first", type=int, default=0, help="number of the first tree; default: %(default)s")
    chosen = parser.parse_args()
    faults = samples = 0
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, ExitStack() as stack:
        root = Path(folder) / "root"
        for name in RECORDINGS:
            unpack(CAPTURES / f"{name}.tar.gz", Path(folder) / name)
        shutil.copytree(Path(folder) / RECORDINGS[0], root, symlinks=True)
        exporters = [stack.enter_context(running(root, flags, hidden)) for flags in FLAGS for hidden in (False, True)]
        for number in range(chosen.first, chosen.first + chosen.trees):
            chance = random.Random(f"{chosen.seed}/{number}")
            shutil.rmtree(root)
            shutil.copytree(Path(folder) / RECORDINGS[number % len(RECORDINGS)], root, symlinks=True)
            for turn in (1, 2):
                damage(root, chance)
                found, differences = compare(exporters)
                samples += found
                faults += len(differences)
                for difference in differences:
                    print(f"tree {number}, turn {turn}: {difference}", flush=True)
    print(f"{chosen.trees} trees, {samples} samples of each pair, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
