"""The command ``tierctl``: what an administrator asks of tierd and of layouts."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from lustre import __version__
from lustre.layout import Layout, explain, setstripe_arguments
from lustre.layout_xattr import from_xattr
from lustre.layout_yaml import to_yaml

EXAMPLES = """\
examples:
  tierctl layout /mnt/lustre/proj/run7/out.dat           one line for people, and the lfs setstripe that would make it
  tierctl layout --yaml /mnt/lustre/proj/run7            as lfs setstripe --yaml takes it
  getfattr -n lustre.lov -e hex FILE | tierctl layout --lov /dev/stdin
"""

_HEX = re.compile(rb"(?:^|[=\s])0[xX]([0-9a-fA-F\s]+)\s*$")


def parser() -> argparse.ArgumentParser:
    """Command line."""
    main_parser = argparse.ArgumentParser(
        prog="tierctl", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Shows layouts of files and directories on Lustre.")
    main_parser.add_argument("--version", action="version", version=f"tierctl {__version__}")
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    layout = commands.add_parser("layout", help="show the layout of a file, or the default layout of a directory")
    what = layout.add_mutually_exclusive_group(required=True)
    what.add_argument("path", nargs="?", type=Path, metavar="PATH", help="file or directory on a mounted Lustre")
    what.add_argument("--lov", type=Path, metavar="FILE", help="raw lustre.lov or trusted.lov, binary or hex")
    form = layout.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all fields, for programs")
    form.add_argument("--yaml", action="store_true", help="as lfs getstripe --yaml prints it")
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when it did its work, 1 for something that cannot be read, which it names."""
    chosen = parser().parse_args(arguments)
    source = chosen.lov or chosen.path
    try:
        data = unhexed(chosen.lov.read_bytes()) if chosen.lov else os.getxattr(chosen.path, "lustre.lov")
        layout = from_xattr(data)
    except OSError as error:
        print(f"{source}: {reason(error)}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{source}: not a layout: {error}", file=sys.stderr)
        return 1
    if chosen.json:
        print(json.dumps(dataclasses.asdict(layout), default=str, indent=1))
    elif chosen.yaml:
        print(to_yaml(layout), end="")
    else:
        print(shown(layout))
    return 0


def unhexed(data: bytes) -> bytes:
    r"""The raw attribute from what getfattr prints, or the bytes as they are when they are no hexadecimal text.

    >>> unhexed(b"# file: x\nlustre.lov=0xd00bd10b\n"), unhexed(b"\xd0\x0b\xd1\x0b")
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


def shown(layout: Layout) -> str:
    """A layout for people."""
    try:
        command = "lfs setstripe " + " ".join(setstripe_arguments(layout))
    except ValueError as error:
        command = f"(lfs setstripe cannot make it: {error})"
    return f"{explain(layout)}\n{command}"


if __name__ == "__main__":
    sys.exit(main())
