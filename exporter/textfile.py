"""Writes the metrics once: to standard output, or to a file for node_exporter's textfile collector."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_metrics(pieces: Iterable[bytes], output: Path | None) -> int:
    try:
        if output is not None:
            write_atomically(output, pieces)
            return 0
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        sys.stderr.write(f"lustre-exporter: cannot write {output or 'to standard output'}: {error.strerror}\n")
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
