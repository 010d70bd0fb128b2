"""``tierctl layout``: show the layout of a file or directory."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import json
import os
import re
import sys
from pathlib import Path

from lustre.fid import Fid
from lustre.layout.model import Layout, explain
from lustre.layout.setstripe import setstripe_arguments
from lustre.layout.xattr import from_xattr
from tierd.text import printable, shell_word

_HEX = re.compile(rb"(?:^|[=\s])0[xX]([0-9a-fA-F\s]+)\s*$")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    layout = commands.add_parser(
        "layout", help="show the layout of a file or the default layout of a directory",
        description="Show the layout of a file or the default layout of a directory, and the lfs setstripe command "
                    "that creates it.")
    what = layout.add_mutually_exclusive_group(required=True)
    what.add_argument("path", nargs="?", type=Path, metavar="PATH", help="file or directory on a mounted Lustre")
    what.add_argument("--lov", type=Path, metavar="FILE",
                      help="read the value of lustre.lov or trusted.lov from this file, binary or hex")
    layout.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print all fields as JSON")
    layout.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the layout; 1, with an error message, if it cannot be read."""
    source = chosen.lov or chosen.path
    try:
        data = unhex(chosen.lov.read_bytes()) if chosen.lov else os.getxattr(chosen.path, "lustre.lov")
        layout = from_xattr(data)
    except OSError as error:
        print(printable(f"{source}: {reason(error)}"), file=sys.stderr)
        return 1
    except ValueError as error:
        print(printable(f"{source}: not a layout: {error}"), file=sys.stderr)
        return 1
    if chosen.json:
        print(json.dumps(dataclasses.asdict(layout), default=json_default, indent=1))
    else:
        print(layout_text(layout))
    return 0


def json_default(value: object) -> object:
    """Convert a FID or another value without a JSON type."""
    return {name: getattr(value, name) for name in ("sequence", "object_id", "version")} if isinstance(
        value, Fid) else str(value)


def unhex(data: bytes) -> bytes:
    r"""The raw attribute from the output of getfattr; other bytes stay unchanged.

    >>> unhex(b"# file: x\nlustre.lov=0xd00bd10b\n"), unhex(b"\xd0\x0b\xd1\x0b")
    (b'\xd0\x0b\xd1\x0b', b'\xd0\x0b\xd1\x0b')
    """
    match = _HEX.search(data)
    if match is None:
        return data
    digits = re.sub(rb"\s", b"", match[1])
    return bytes.fromhex(digits.decode("ascii"))


def reason(error: OSError) -> str:
    """The cause of an error, in terms of layouts where possible."""
    if error.errno == errno.ENODATA:
        return "no layout of its own (a directory then inherits the default layout of its parent or of the file system)"
    if error.errno == errno.EOPNOTSUPP:
        return "not on Lustre"
    return error.strerror or str(error)


def layout_text(layout: Layout) -> str:
    """One line that describes the layout, and the command that creates it."""
    try:
        command = "lfs setstripe " + " ".join(map(shell_word, setstripe_arguments(layout)))
    except ValueError as error:
        command = f"(lfs setstripe cannot create it: {error})"
    return f"{printable(explain(layout))}\n{printable(command)}"
