"""What a program does with output that nobody takes: it was closed, its reader has gone, or the disk is full."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

NOT_TAKEN = (errno.EPIPE, errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def standard_output(program: str) -> Iterator[None]:
    """Exit with 1 if standard output does not take what the program writes; one line says why, except to ``| head``."""
    if sys.stdout is None:  # closed by who started the program: a write fails, as that of other programs does
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:  # print(…, file=None) would write errors to standard output
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that the locale cannot express
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in NOT_TAKEN or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still holds
        if error.errno != errno.EPIPE:
            sys.stderr.write(f"{program}: standard output: {error.strerror}\n")
        raise SystemExit(1) from None
