"""The settings of policies and integrations, read from their tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
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
    return tuple(ConfiguredPolicy(policy, validated_table(policy.settings, tables.get(table, {}), ("detect", table),
                                                          mistakes))
                 for table, policy in by_table.items()), mistakes


def configured_tables(values: Mapping[str, object], known: Iterable[Policy]) -> tuple[Tables, list[Problem]]:
    """The further tables of policies, and every mistake in them."""
    mistakes: list[Problem] = []
    return Tables({name: validated_table(of, values.get(name, {}), (name,), mistakes)
                   for name, of in table_types(known).items()}), mistakes


def configured_integrations(values: Mapping[str, object]) -> tuple[Tables, list[Problem]]:
    """The settings of integrations in ``[sense]``, and every mistake in them."""
    mistakes: list[Problem] = []
    found = {name: validated_table(integration.settings, values[name], ("sense", name), mistakes)
             for name, integration in integrations().items() if name in values}
    return Tables({**default_settings(), **found}), mistakes


def validated_table(of: type[Any], values: object, above: tuple[str, ...], mistakes: list[Problem]) -> Any:
    """One table, after its mistakes were added. An invalid setting has its default, for the checks of the others."""
    try:
        return validator_of(of).validate_python(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
    mistakes += [(e["type"], (*above, *e["loc"]), e["msg"], e.get("input")) for e in found]
    if not isinstance(values, Mapping):
        return of()
    rest = deepcopy(dict(values))
    for each in found:
        remove_at(rest, each["loc"])
    try:
        return validator_of(of).validate_python(rest)
    except ValidationError:
        return of()


def remove_at(values: object, location: Sequence[int | str]) -> None:
    """Remove the value at a location, or else the nearest table of it that is in the values."""
    if not location:
        return  # the mistake is in the table as a whole
    table: Any = values
    for part in location[:-1]:
        inner = table.get(part) if isinstance(table, dict) else None
        if not isinstance(inner, dict):  # a list, or a value where a table belongs
            break
        table = inner
    else:
        part = location[-1]
    if isinstance(table, dict):
        table.pop(part, None)


def wrong_kinds(kinds: Sequence[object], known: Sequence[Policy]) -> Iterator[Problem]:
    """Entries of ``[act] on`` that name no policy that acts, and no option of one."""
    acting = [policy.name for policy in known if policy.plan is not None]
    options = [f"with {policy.name!r} {policy.option}" for policy in known if policy.option]
    names = {*acting, *(policy.name for policy in known if policy.option)}
    for number, kind in enumerate(kinds):
        if isinstance(kind, str) and kind not in names:
            yield ("value_error", ("act", "on", number), "Value error, tierd acts on "
                   + ", and ".join((f"{', '.join(acting[:-1])} and {acting[-1]} only", *options)), kind)
