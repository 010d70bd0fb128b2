import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from scripts.settings_tables import DOCS, HEAD, missing, with_tables
from tierd.config.load import parse
from tierd.config.settings import Settings
from tierd.detect.view import View
from tierd.model import Finding, Table
from tierd.policies.protocol import Common, Policy
from tierd.policies.registry import BUILT_IN, GROUP, PolicyError, available_policies, table_types


def nothing(_: View, __: Common) -> Iterator[Finding]:
    yield from ()


OURS = Policy("tape-drive", Common, nothing)
NAMED_AS_ANOTHER = Policy("hot-small-files", Common, nothing)
WITH_THE_TABLE_OF_ANOTHER = Policy("hot_small_files", Common, nothing)
NAMED_AS_AN_ORDER = Policy("drain", Common, nothing)
NO_NAME = Policy("Tape drive", Common, nothing)
NO_POLICY = "a string"


@dataclass(frozen=True)
class Mine(Table):
    max_moves: int = 1


@dataclass(frozen=True, kw_only=True)
class Needs(Common):
    at_least: float


class Plain(Common):
    enter: float = 1.0


NO_CLASS = Policy("tape-drive", Common(), nothing)  # type: ignore[arg-type]
NO_DEFAULT = Policy("tape-drive", Needs, nothing)
NOT_DECORATED = Policy("tape-drive", Plain, nothing)
TABLE_OF_ANOTHER = Policy("tape-drive", Common, nothing, tables={"rebalance": Mine})


def __getattr__(name: str) -> Policy:
    """What is in a module that ends the program."""
    if name == "ENDS":
        raise SystemExit(3)
    raise AttributeError(name)


def entry(attribute: str) -> EntryPoint:
    return EntryPoint("theirs", f"tests.tierd.config.test_policies:{attribute}", GROUP)


def test_a_policy_of_another_package_follows_the_built_in_ones() -> None:
    policies = available_policies([entry("OURS")])
    assert [d.name for d in policies] == [*(d.name for d in BUILT_IN), "tape-drive"]
    settings = parse(b"[detect.tape_drive]\nenabled = false\n", "t.toml", policies)
    assert not settings.policies[-1].settings.enabled


@pytest.mark.parametrize(("attribute", "words"), [
    ("MISSING", "cannot be loaded: AttributeError: "), ("ENDS", "cannot be loaded: SystemExit: 3"),
    ("NO_CLASS", "is not a tierd.policies.protocol.Policy"),
    ("NO_DEFAULT", r"its settings \[detect.tape_drive\] have no defaults: .*at_least"),
    ("NOT_DECORATED", r"its settings \[detect.tape_drive\] are no class with @dataclass"),
    ("TABLE_OF_ANOTHER", r"the table \[rebalance\] is of another policy"),
    ("NO_POLICY", "is not a tierd.policies.protocol.Policy"),
    ("NAMED_AS_ANOTHER", "the name 'hot-small-files' is taken"), ("NAMED_AS_AN_ORDER", "the name 'drain' is taken"),
    ("WITH_THE_TABLE_OF_ANOTHER", "the name 'hot_small_files' is not"), ("NO_NAME", "the name 'Tape drive' is not")])
def test_one_that_cannot_be_used_is_named(attribute: str, words: str) -> None:
    with pytest.raises(PolicyError, match=f"policy theirs.*{words}"):
        available_policies([entry(attribute)])


@pytest.mark.parametrize("name", ["act", "limits", "scopes", "detect"])
def test_a_table_of_tierd_cannot_be_that_of_a_policy(name: str) -> None:
    """It would be in place of ``[limits]``, whose settings would have no effect."""
    policies = (*BUILT_IN, Policy("tape-drive", Common, nothing, tables={name: Mine}))
    with pytest.raises(PolicyError, match=rf"policy tape-drive: the table \[{name}\] is tierd's own"):
        parse(b"", "t.toml", policies)


def test_names_are_unique_and_settings_valid_by_default() -> None:
    assert len({d.name for d in BUILT_IN}) == len(BUILT_IN)
    for policy in BUILT_IN:
        assert policy.settings().enabled
        assert policy.settings.__doc__
    assert all(table().__doc__ for table in table_types(BUILT_IN).values())


def test_settings_go_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Settings())) == Settings()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_tables_of_settings_are_those_of_the_code(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == with_tables(page), "run: python -m scripts.settings_tables"


def test_the_documentation_has_a_table_of_each_policy() -> None:
    assert missing(DOCS / "policies.md") == [], "write these lines there, then: python -m scripts.settings_tables"


def test_a_table_without_settings_and_settings_without_a_table_are_named(tmp_path: Path) -> None:
    page = tmp_path / "policies.md"
    page.write_text("# Policies\n\n" + HEAD.format("detect.none"))
    with pytest.raises(ValueError, match=r"policies\.md:3: tierd has no settings \[detect\.none\]"):
        with_tables(page)
    assert HEAD.format("detect.small_random_io") in missing(page)
    assert HEAD.format("restripe") in missing(page)
