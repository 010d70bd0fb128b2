"""``python -m scripts.settings_tables``: write the tables of settings in docs/ from the settings of tierd.

A table is one whose head names it: ``| setting of `[drain]` | default | meaning |``. Its rows have the settings with
their defaults, and the first sentence of the docstring below each.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from tierd.config.settings import Settings
from tierd.policies.protocol import Common
from tierd.policies.registry import BUILT_IN, table_types

DOCS = Path(__file__).parent.parent / "docs"
TABLE = re.compile(r"^\| setting of `\[([\w.]+)\]` \|.*\n\|[-:|]+\|\n(?:\|.*\n)*", re.MULTILINE)
HEAD = "| setting of `[{}]` | default | meaning |\n|---|---:|---|\n"


def table(name: str) -> str:
    """The table in Markdown. Raises AttributeError or KeyError for a name that no table has."""
    first, _, rest = name.partition(".")
    if first == "detect":
        policy = {each.policy.table: each.settings for each in Settings().policies}[rest]
        shared = {each.name for each in fields(Common)} | {"classes"}
        return HEAD.format(name) + "".join(rows(policy, leave_out=shared))
    return HEAD.format(name) + "".join(rows(Settings().tables.by_name.get(name) or getattr(Settings(), name)))


def rows(settings: Any, prefix: str = "", leave_out: Collection[str] = ()) -> Iterator[str]:
    """The rows of all settings, also of tables in the table."""
    about = docstrings(type(settings))
    for each in fields(settings):
        value = getattr(settings, each.name)
        if each.name in leave_out:
            continue
        if is_dataclass(value):
            yield from rows(value, f"{prefix}{each.name}.")
        else:
            yield f"| `{prefix}{each.name}` | {written(value)} | {about.get(each.name, '')} |\n".replace("|  |", "| |")


def docstrings(cls: type) -> dict[str, str]:
    """The first sentence below each field of a dataclass and its bases."""
    found: dict[str, str] = {}
    for base in reversed([one for one in cls.__mro__ if is_dataclass(one)]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                text = " ".join(str(ast.literal_eval(below.value)).split())
                found[field.target.id] = re.split(r"\.(?: |$)", text.replace("``", "`"))[0]
    return found


def written(value: object) -> str:
    """A default as in TOML; empty for none.

    >>> written(0.5), written(1e8), written(True), written(("/",)), written(())
    ('0.5', '1e+08', 'true', '["/"]', '[]')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if value >= 1e6 else repr(value)
    if isinstance(value, tuple | list):
        return json.dumps(value)
    return "" if value is None else str(value)


def with_tables(page: Path) -> str:
    """A page with its tables of settings as they are in the code. Raises ValueError for a table that the code lacks."""
    text = page.read_text(encoding="utf-8")

    def filled(found: re.Match[str]) -> str:
        try:
            return table(found[1])
        except (AttributeError, KeyError):
            line = 1 + text[:found.start()].count("\n")
            raise ValueError(f"{page}:{line}: tierd has no settings [{found[1]}]") from None

    return TABLE.sub(filled, text)


def missing(page: Path) -> list[str]:
    """Heads of the tables of policies that the page lacks."""
    documented = {found[1] for found in TABLE.finditer(page.read_text(encoding="utf-8"))}
    shared = {each.name for each in fields(Common)}
    of_policies = [f"detect.{policy.table}" for policy in BUILT_IN
                   if {each.name for each in fields(policy.settings)} - shared]
    return [HEAD.format(name) for name in (*of_policies, *table_types(BUILT_IN)) if name not in documented]


if __name__ == "__main__":
    try:
        for each in DOCS.glob("*.md"):
            each.write_text(with_tables(each), encoding="utf-8")
    except ValueError as error:
        sys.exit(str(error))
    if heads := missing(DOCS / "policies.md"):
        sys.exit(f"{DOCS / 'policies.md'}: write these lines where their policies are described:\n{''.join(heads)}")
