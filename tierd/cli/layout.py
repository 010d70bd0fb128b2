"""``tierctl layout``: the layout of a file or directory, explained."""

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
from lustre.layout.yaml import to_yaml
from tierd.text import printable, shell_word

_HEX = re.compile(rb"(?:^|[=\s])0[xX]([0-9a-fA-F\s]+)\s*$")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command line of ``tierctl layout``."""
    layout = commands.add_parser("layout", help="show the layout of a file, or the default layout of a directory")
    what = layout.add_mutually_exclusive_group(required=True)
    what.add_argument("path", nargs="?", type=Path, metavar="PATH", help="file or directory on a mounted Lustre")
    what.add_argument("--lov", type=Path, metavar="FILE", help="raw lustre.lov or trusted.lov, binary or hex")
    form = layout.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all fields, for programs")
    form.add_argument("--yaml", action="store_true", help="as lfs getstripe --yaml prints it")
    layout.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Show it; 1 for something that cannot be read, which is named."""
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
    elif chosen.yaml:
        text = to_yaml(layout)
        if not text.replace("\n", "").isprintable():
            print(printable(f"{source}: what it holds cannot be written as YAML; try --json"), file=sys.stderr)
            return 1
        print(text, end="")
    else:
        print(layout_text(layout))
    return 0


def json_default(value: object) -> object:
    """A value that JSON has no form for."""
    return {name: getattr(value, name) for name in ("sequence", "object_id", "version")} if isinstance(
        value, Fid) else str(value)


def unhex(data: bytes) -> bytes:
    r"""The raw attribute from what getfattr prints, or the bytes as they are when they are no hexadecimal text.

    >>> unhex(b"# file: x\nlustre.lov=0xd00bd10b\n"), unhex(b"\xd0\x0b\xd1\x0b")
    (b'\xd0\x0b\xd1\x0b', b'\xd0\x0b\xd1\x0b')
    """
    match = _HEX.search(data)
    if match is None:
        return data
    digits = re.sub(rb"\s", b"", match[1])
    return bytes.fromhex(digits.decode("ascii"))


def reason(error: OSError) -> str:
    """An errno in words that help."""
    if error.errno == errno.ENODATA:
        return "no layout of its own (a directory then takes its parent's or the file system's default)"
    if error.errno == errno.EOPNOTSUPP:
        return "not on Lustre"
    return error.strerror or str(error)


def layout_text(layout: Layout) -> str:
    """A layout for people."""
    try:
        command = "lfs setstripe " + " ".join(map(shell_word, setstripe_arguments(layout)))
    except ValueError as error:
        command = f"(lfs setstripe cannot make it: {error})"
    return f"{printable(explain(layout))}\n{printable(command)}"
