"""The settings of policies and integrations, read from their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from tierd.integrations.registry import default_settings, integrations
from tierd.policies.protocol import ConfiguredPolicy, Policy, Tables
from tierd.policies.registry import table_types
from tierd.validators import validator_of

Problem = tuple[str, tuple[int | str, ...], str, object]
"""Pydantic's kind of mistake, location, message, and the invalid value."""


def configured_policies(tables: object, known: Iterable[Policy]) -> tuple[tuple[ConfiguredPolicy, ...],
                                                                          list[Problem]]:
    """Policies that find something by the view, with the settings of ``[detect]``, and every mistake of every table."""
    if not isinstance(tables, Mapping):
        return (), [("no_table", ("detect",), "this is a table of tables, one for each detector", tables)]
    by_table = {policy.table: policy for policy in known if policy.find is not None}
    mistakes: list[Problem] = [("extra_forbidden", ("detect", name), "", values)
                               for name, values in tables.items() if name not in by_table]
    found = []
    for table, policy in by_table.items():
        settings = validated_table(policy.settings, tables.get(table, {}), ("detect", table), mistakes)
        if settings is not None:
            found.append(ConfiguredPolicy(policy, settings))
    return tuple(found), mistakes


def configured_tables(values: Mapping[str, object], known: Iterable[Policy]) -> tuple[Tables, list[Problem]]:
    """The further tables of policies, and every mistake in them. A table with a mistake has its defaults."""
    mistakes: list[Problem] = []
    return Tables({name: validated_table(of, values.get(name, {}), (name,), mistakes) or of()
                   for name, of in table_types(known).items()}), mistakes


def configured_integrations(values: Mapping[str, object]) -> tuple[Tables, list[Problem]]:
    """The settings of integrations in ``[sense]``, and every mistake. Those with a mistake have the defaults."""
    mistakes: list[Problem] = []
    found = {name: validated_table(integration.settings, values[name], ("sense", name), mistakes)
             for name, integration in integrations().items() if name in values}
    chosen = {name: value for name, value in found.items() if value is not None}
    return Tables({**default_settings(), **chosen}), mistakes


def validated_table(of: type[Any], values: object, above: tuple[str, ...], mistakes: list[Problem]) -> Any:
    """One table, or None after its mistakes were added."""
    try:
        return validator_of(of).validate_python(values)
    except ValidationError as error:
        mistakes += [(e["type"], (*above, *e["loc"]), e["msg"], e.get("input"))
                     for e in error.errors(include_url=False)]
        return None


def wrong_kinds(kinds: Sequence[object], known: Sequence[Policy]) -> Iterator[Problem]:
    """Entries of ``[act] on`` that name no policy that acts, and no option of one."""
    acting = [policy.name for policy in known if policy.plan is not None]
    options = [f"with {policy.name!r} {policy.option}" for policy in known if policy.option]
    names = {*acting, *(policy.name for policy in known if policy.option)}
    for number, kind in enumerate(kinds):
        if isinstance(kind, str) and kind not in names:
            yield ("value_error", ("act", "on", number), "Value error, tierd acts on "
                   + ", and ".join((f"{', '.join(acting[:-1])} and {acting[-1]} only", *options)), kind)
