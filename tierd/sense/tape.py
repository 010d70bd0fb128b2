"""A recorded time series as a source: snapshots of parameter files, the changelogs, and the paths of some FIDs.

tests/tapes/README.md describes the format: ``tape.json`` beside ``tape.tar.xz``, which holds ``NNN/proc/…``,
``NNN/sys/…`` and one ``changelog-MDTxxxx.bin`` for each MDT.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lustre.changelog.record import Record, RecordType, decode
from lustre.fid import Fid
from lustre.layout.model import Layout
from lustre.layout.yaml import from_yaml
from lustre.parameters import Roots, Tree
from lustre.unpack import unpack

NEEDED = re.compile(
    r"/job_stats$|/pools/|/(obdfilter|mdt)/[^/]+/(degraded|recovery_status|kbytes\w+)$|^changelog-"
    r"|/llite/[^/]+/(read_ahead_stats|statahead_stats|max_read_ahead(_per_file)?_mb|statahead_max)$"
    r"|/(osc|mdc)/[^/]+/(rpc_stats|max_(mod_)?rpcs_in_flight|max_pages_per_rpc)$")
"""Names of the files a replay reads; the others are not unpacked."""


class TapeError(ValueError):
    """A tape is invalid. The message names the file and the problem."""


@dataclass(frozen=True, slots=True)
class Tape:
    """An unpacked tape."""

    name: str
    fsname: str
    times: tuple[float, ...]
    """Start of each snapshot; epoch seconds."""
    trees: tuple[Tree, ...]
    records: tuple[Record, ...]
    """Changelog records of all MDTs, in the order of time."""
    undecoded_bytes: int
    """Bytes at the ends of changelogs that are not a complete record."""
    paths: dict[Fid, str]
    layouts: dict[str, Layout | None]
    """By path; None for a directory without a default layout. A path with a text that is not understood is left out."""

    def resolve(self, fid: Fid) -> str:
        """Path of a FID. Raises FileNotFoundError if the tape does not have it."""
        if fid not in self.paths:
            raise FileNotFoundError(f"{fid} is not named on the tape")
        return self.paths[fid]

    def layouts_of(self, directories: Iterable[str]) -> dict[str, Layout | None]:
        """Default layouts of directories, as far as they are known."""
        return {each: self.layouts[each] for each in directories if each in self.layouts}


@contextmanager
def opened(path: Path) -> Iterator[Tape]:
    """Unpack a tape for as long as it is read. ``path`` is its folder, or the ``tape.tar.xz`` in it. Raises TapeError
    if something is missing or broken.
    """
    if not path.exists():
        raise TapeError(f"{path}: no such file or folder: a tape is a folder with tape.json and tape.tar.xz")
    folder = path if path.is_dir() else path.parent
    meta = read_meta(folder / "tape.json")
    archive = path if path.is_file() else folder / "tape.tar.xz"
    if not archive.is_file():  # unpacked by hand
        yield assemble(folder, meta)
        return
    with tempfile.TemporaryDirectory(prefix="tierd-replay-") as work:
        try:
            unpack(archive, Path(work), lambda name: NEEDED.search(name) is not None)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise TapeError(f"{archive}: cannot be unpacked: {str(error).partition(':')[0]}") from error
        yield assemble(Path(work), meta)


def read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(path.read_bytes())
    except OSError as error:
        raise TapeError(f"{path}: {error.strerror}: a tape is a folder with tape.json and tape.tar.xz") from error
    except ValueError as error:
        raise TapeError(f"{path}: not JSON: {error}") from error
    if not isinstance(meta, dict) or not isinstance(meta.get("snapshot_times"), list):
        raise TapeError(f"{path}: no list 'snapshot_times'")
    return meta


def assemble(folder: Path, meta: dict[str, Any]) -> Tape:
    fids, texts = (found if isinstance(found := meta.get(key), dict) else {} for key in ("fids", "layouts"))
    snapshots = [(float(t), folder / f"{n:03d}") for n, t in enumerate(meta["snapshot_times"])
                 if (folder / f"{n:03d}").is_dir()]
    if len(snapshots) < 2:
        raise TapeError(f"of the snapshots in tape.json {len(snapshots)} are there; a replay needs two")
    paths = {Fid.parse(fid): path for path, fid in fids.items()}
    layouts: dict[str, Layout | None] = dict.fromkeys(paths.values())
    for path, text in texts.items():
        layouts.pop(path, None)
        with suppress(ValueError):
            layouts[path] = from_yaml(str(text))
    records: list[Record] = []
    left = 0
    for binary in sorted(folder.glob("changelog-MDT*.bin")):
        data = binary.read_bytes()
        with suppress(ValueError):  # the first record is invalid
            decoded, consumed = decode(data)
            records += decoded
            data = data[consumed:]
        left += len(data)
    records.sort(key=lambda record: record.time)
    places = dict(paths)
    for made in records:
        above = places.get(made.parent)
        if made.type is RecordType.MKDIR and above in layouts:
            places[made.target] = below = f"{above}/{os.fsdecode(made.name)}"
            layouts[below] = layouts[above]  # mkdir copies the default
    return Tape(
        str(meta.get("name", folder.name)), str(meta.get("fsname", "lustre")),
        tuple(t for t, _ in snapshots),
        tuple(Tree(Roots.of(root / "proc", root / "sys")) for _, root in snapshots),
        tuple(records), undecoded_bytes=left, paths=paths, layouts=layouts)
