"""cli_files.py PACKAGE ROOT: writes manual pages and completions of the programs of a package below ROOT.

All of it is generated from the parsers, so it cannot differ from ``--help``. Needs argparse-manpage and shtab (the
extra ``dist``). ZSH_FOLDER is the folder of zsh's completions of packages (default: that of Enterprise Linux).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from argparse_manpage.manpage import Manpage

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from exporter.__main__ import build_parser  # noqa: E402
from lustre import __version__  # noqa: E402
from tierd import cli  # noqa: E402
from tierd.__main__ import parser as tierd  # noqa: E402
from tierd.cli.completion import SHELLS, completions  # noqa: E402
from tierd.cli.tierctl import parser as tierctl  # noqa: E402

del cli.MODULES["tierd.cli.simulate"]  # packages have no simulator

ZSH = "usr/share/zsh/site-functions"


PROGRAMS: Mapping[str, Mapping[str, tuple[int, Callable[[], argparse.ArgumentParser]]]] = {
    "lustre-exporter": {"lustre-exporter": (8, build_parser)},
    "lustre-tierd": {"tierd": (8, tierd), "tierctl": (1, tierctl)},
}
"""Packages; of each its programs with the section of their manual pages."""


TO_MAN = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq"})
"""Characters that man(7) would print otherwise."""


def manual_page(program: str, section: int, parser: argparse.ArgumentParser) -> str:
    """A manual page in the language of man(7)."""
    summary = (parser.description or "").partition(". ")[0].rstrip(".")
    data = {"project_name": "lustre-tierd", "version": __version__, "manual_section": section,
            "manual_title": "Lustre monitoring and tiering", "authors": [], "description": summary}
    examples, parser.epilog = parser.epilog or "", None  # else it would be filled as prose
    page = str(Manpage(parser, _data=data)).rstrip("\n")
    return f"{page}\n.SH EXAMPLES\n.nf\n{examples.translate(TO_MAN)}.fi\n" if examples else page


def main(package: str, root: Path, zsh: str) -> None:
    """Write all files of a package."""
    for program, (section, parser) in PROGRAMS[package].items():
        texts = {f"usr/share/man/man{section}/{program}.{section}": manual_page(program, section, parser())}
        places = {"bash": f"usr/share/bash-completion/completions/{program}", "zsh": f"{zsh}/_{program}",
                  "fish": f"usr/share/fish/vendor_completions.d/{program}.fish"}
        texts |= {places[shell]: completions(parser(), shell) for shell in SHELLS}
        for place, text in texts.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text + "\n" * (not text.endswith("\n")), encoding="utf-8")
            (root / place).chmod(0o644)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), os.environ.get("ZSH_FOLDER", ZSH).strip("/"))
