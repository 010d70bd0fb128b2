"""Writes the metrics once: to standard output, or to a file for node_exporter's textfile collector."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lustre.journald import complain


def write_metrics(pieces: Iterable[bytes], output: Path | None) -> int:
    if output is None:
        sys.stdout.buffer.writelines(pieces)
        return 0
    try:
        if output.exists() and not output.is_file():  # to replace /dev/null would harm the node
            raise FileExistsError(errno.EEXIST, "it exists, and is no regular file")
        write_atomically(Path(os.path.realpath(output)), pieces)  # /dev/stdout is a link
    except OSError as error:
        complain(f"lustre-exporter: cannot write {output}: {error.strerror}")
        return 1
    return 0


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Replace a file atomically, readable for all. It is never incomplete, even if the disk is full."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
