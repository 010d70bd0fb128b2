"""Reads settings from a TOML file and its drop-ins. Reports every mistake at once, with its line and the correction."""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tierd.config import act, files
from tierd.config.contradictions import contradictions, value_at
from tierd.config.files import TomlFile, location_of, merge
from tierd.config.scopes import Scope, Scopes, with_inherited
from tierd.config.sense import has_credentials
from tierd.config.settings import Settings, WebSettings
from tierd.integrations.registry import default_settings, integrations
from tierd.policies.protocol import ConfiguredPolicy, Policy, Tables
from tierd.policies.registry import PolicyError, policies, table_types
from tierd.validators import T, validator_of

Problem = tuple[str, tuple[int | str, ...], str, object]
"""Pydantic's kind of mistake, location, message, and the invalid value."""


class ConfigurationError(ValueError):
    """Everything that is wrong with a configuration file, one per line: file, line, mistake and correction."""


log = logging.getLogger("tierd.config")


@dataclass(frozen=True, order=True)
class Remark:
    """One mistake or warning, with its place in the files. Remarks are ordered by place."""

    file: int
    """Number of the file: the main file is 0."""
    line: int
    text: str
    """With the name of the file and the line."""
    fatal: bool = True


@dataclass(frozen=True)
class Examined:
    """Configuration files and all remarks on them."""

    files: Sequence[TomlFile]
    settings: Settings | None
    """None if there are mistakes."""
    remarks: Sequence[Remark]
    """In the order of the files and their lines."""
    web: WebSettings = field(default_factory=WebSettings)
    """Those without mistakes, even where there are mistakes."""

    def remark(self, location: Sequence[int | str], sentence: str, *, fatal: bool = True) -> Remark:
        return remark_on(self.files, location, sentence, fatal=fatal)


def load(path: Path | None) -> Settings:
    """Read a configuration file and its drop-ins. Raises ConfigurationError with all mistakes, or OSError.

    None is an empty file: the defaults, with those of the policies of other packages.
    """
    return accepted(examine(path))


def examine(path: Path | None) -> Examined:
    """Read a configuration file and its drop-ins. Raises ConfigurationError for a file that is not TOML, or OSError."""
    try:
        examined = examine_files(files.read_files(path) if path else (), tuple(policies().values()))
    except ValueError as error:  # a policy that is broken, or files that are not TOML
        raise ConfigurationError(str(error)) from error
    if examined.settings is None:
        return examined
    wrong = [examined.remark(*each) for each in secret_file_problems(examined.settings)]
    return replace(examined, settings=None if wrong else examined.settings, remarks=sorted((*examined.remarks, *wrong)))


def accepted(examined: Examined) -> Settings:
    """The settings. Each remark is logged as a warning. Raises ConfigurationError with all mistakes."""
    for remark in examined.remarks:
        if not remark.fatal:
            log.warning("%s", remark.text)
    if examined.settings is None:
        raise ConfigurationError("\n".join(remark.text for remark in examined.remarks if remark.fatal))
    return examined.settings


def parse(data: bytes, name: str, known: Sequence[Policy] = ()) -> Settings:
    r"""Settings from the bytes of a TOML file. ``known`` are all policies by default. Raises ConfigurationError.

    >>> parse(b"[small_files_to_flash]\nflash_pool = 'nvme'\n", "t.toml").small_files_to_flash.flash_pool
    'nvme'
    """
    try:
        file = files.parse_file(data, name)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return accepted(examine_files((file,), known or tuple(policies().values())))


def examine_files(files: Sequence[TomlFile], known: Sequence[Policy]) -> Examined:
    """Settings from files, and every remark on them. Of a setting, the value of the last file counts.

    Raises PolicyError for a policy whose table would be in place of one of tierd.
    """
    taken = {each.name for each in fields(Settings)} | {"detect"}
    for policy in known:
        if clash := sorted(taken & policy.tables.keys()):
            raise PolicyError(f"policy {policy.name}: the table [{clash[0]}] is tierd's own")
    written = merge(files)
    values, problems = dict(written), list[Problem]()
    configured, tables = configured_policies(values.pop("detect", {}), known, problems), table_types(known)
    further = Tables({name: validated(of, values.pop(name, {}), (name,), problems) for name, of in tables.items()})
    sense = values.get("sense")
    asked = {}
    if isinstance(sense, dict):
        asked = {name: validated(each.settings, sense[name], ("sense", name), problems)
                 for name, each in integrations().items() if name in sense}
        values["sense"] = {name: value for name, value in sense.items() if name not in asked}
    scopes = values.pop("scopes", [])
    general = validated(Settings, values, (), problems)
    inherited = {"mode": general.act.mode, "small_files_to_flash": asdict(general.small_files_to_flash)}
    settings = replace(
        general, policies=configured, tables=further, integrations=Tables({**default_settings(), **asked}),
        scopes=validated(Scopes, with_inherited(scopes, general.filesystem.mount, inherited), ("scopes",), problems))
    problems += wrong_kinds(value_at(values, ("act", "on")), known)
    places = {place for _, place, _, _ in problems}
    first_unknown = {*{place[:-1]: place for kind, place, _, _ in reversed(problems) if kind in UNKNOWN}.values()}
    remarks = []
    for kind, place, message, value in problems:
        names = known_settings(place[:-1], known) if kind in UNKNOWN and place in first_unknown else ()
        remarks.append(remark_on(files, place, describe_problem(kind, message, value, names)))
    remarks += [remark_on(files, each.location, each.sentence, fatal=each.fatal)
                for each in contradictions(settings, written) if not places & {each.location, *each.others}]
    wrong = any(remark.fatal for remark in remarks)
    return Examined(files, None if wrong else settings, sorted(remarks), settings.web)


def configured_policies(tables: object, known: Iterable[Policy], problems: list[Problem]
                        ) -> tuple[ConfiguredPolicy, ...]:
    """Policies that find something by the view, with the settings of ``[detect]``."""
    if not isinstance(tables, dict):
        problems.append(("no_table", ("detect",), "this is a table of tables, one for each policy", tables))
        return ()
    by_table = {policy.table: policy for policy in known if policy.find is not None}
    problems += [("extra_forbidden", ("detect", name), "", values) for name, values in tables.items()
                 if name not in by_table]
    return tuple(ConfiguredPolicy(policy, validated(policy.settings, tables.get(name, {}), ("detect", name), problems))
                 for name, policy in by_table.items())


def validated(of: type[T], values: object, above: tuple[str, ...], problems: list[Problem]) -> T:
    """A table, after its mistakes were added. An invalid setting has its default, for the checks of the others."""
    validator, wrong = validator_of(of), set[tuple[int | str, ...]]()
    rest, made = deepcopy(values), None
    while made is None:
        try:
            made = validator.validate_python(rest)
        except ValidationError as error:
            found = [each for each in error.errors(include_url=False) if each["loc"] not in wrong]
            if not wrong:  # what is wrong later is a table in which wrong settings have their defaults
                problems += [(e["type"], (*above, *e["loc"]), e["msg"], e.get("input")) for e in found]
            wrong |= {each["loc"] for each in found}
            if isinstance(rest, dict) and found:
                for place in wrong:
                    remove_at(rest, place)
            else:
                made = of()
    return made


def remove_at(values: dict[str, Any], location: Sequence[int | str]) -> None:
    """Remove the value at a location, or else the nearest table of it that is in the values."""
    if not location:
        return  # the mistake is in the table as a whole
    table, part = values, location[0]
    for inner in location[1:]:
        if not isinstance(table.get(str(part)), dict):  # a list, or a value where a table belongs
            break
        table, part = table[str(part)], inner
    table.pop(str(part), None)


def wrong_kinds(kinds: object, known: Sequence[Policy]) -> Iterator[Problem]:
    """Entries of ``[act] on`` that name no policy that acts, and no option of one."""
    acting = [policy.name for policy in known if policy.plan is not None]
    options = [f"with {policy.name!r} {policy.option}" for policy in known if policy.option]
    names = {*acting, *(policy.name for policy in known if policy.option)}
    for number, kind in enumerate(kinds if isinstance(kinds, list) else ()):
        if isinstance(kind, str) and kind not in names:
            yield ("value_error", ("act", "on", number), "Value error, tierd acts on "
                   + ", and ".join((f"{', '.join(acting[:-1])} and {acting[-1]} only", *options)), kind)


def leaves(value: object, location: tuple[int | str, ...] = ()) -> Iterator[tuple[tuple[int | str, ...], object]]:
    """The values in tables and lists, with their locations.

    >>> list(leaves({"limits": {"files_per_second": 5.0}, "own_jobs": ["lfs.0"]}))
    [(('limits', 'files_per_second'), 5.0), (('own_jobs', 0), 'lfs.0')]
    """
    if not isinstance(value, Mapping | list):
        yield location, value
        return
    for name, part in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield from leaves(part, (*location, name))


def remark_on(files: Sequence[TomlFile], location: Sequence[int | str], sentence: str, *, fatal: bool = True) -> Remark:
    """A remark with the file, the line and the name of a setting."""
    number, line = location_of(files, location)
    name = ".".join(str(part) for part in location if part != "[key]")
    return Remark(number, line, f"{files[number].name}:{line}: {name}: {sentence}", fatal)


UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
"""Pydantic's kinds of a setting that does not exist."""


def describe_problem(kind: str, message: str, value: object, known: Sequence[str]) -> str:
    """What is wrong with a setting, and what to write. ``known``: settings of the table, for the first unknown one."""
    if kind in UNKNOWN:
        return "unknown setting" + (f"; known here: {', '.join(known)}" if known else "")
    plain = PLAIN.get(re.sub(r"_(type|parsing|from_float)$", "", kind))
    words = plain or re.sub(r"^Input should be", "must be", message.removeprefix("Value error, "))
    hidden = isinstance(value, dict | list | tuple) or repr(value) in words or has_credentials(str(value))
    return f"{words}{'' if hidden else f' (it is {value!r})'}"


PLAIN = {
    "bool": "write true or false, without quotes", "float": "write a number", "int": "write a whole number",
    "string": "write text in quotes", "tuple": "write a list in brackets", "frozen_set": "write a list in brackets",
    "dict": "this is a table", "dataclass": "this is a table", "missing": "this setting is needed here",
}
"""Sentences for the mistakes that pydantic words for programmers, by its kind of error without the last word."""


def known_settings(location: Sequence[int | str], known: Sequence[Policy]) -> list[str]:
    """Names of the settings in one table."""
    of_policies = {policy.table: policy.settings() for policy in known if policy.find is not None}
    table: Any = {each.name: getattr(Settings(), each.name) for each in fields(Settings)}
    del table["policies"], table["tables"], table["integrations"]
    table["sense"] = {**vars(Settings().sense), **default_settings()}
    table |= {"detect": of_policies} | {name: of() for name, of in table_types(known).items()}
    for part in location:
        if part == "scopes":
            table = Scope("/", limits=act.Limits())
        elif not isinstance(part, int):
            table = table.get(part, act.Rate()) if isinstance(table, dict) else getattr(table, part)  # a pool
    return sorted(table) if isinstance(table, dict) else sorted(f.name for f in fields(table))


SECRETS = ("password_file", "token_file", "key_file")


def secret_file_problems(settings: Settings) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Settings that name a file with a password, token or key that is missing or that everybody can read."""
    sense = {**asdict(settings.sense), **asdict(settings.integrations)["by_name"]}
    for location, path in leaves(sense, ("sense",)):
        if location[-1] not in SECRETS or not path:
            continue
        try:
            mode = stat.S_IMODE(Path(str(path)).stat().st_mode)
        except OSError as error:
            yield location, f"{path} cannot be read: {error.strerror}"
            continue
        if mode & stat.S_IROTH:
            yield location, f"{path} has mode {mode:04o}, so every user can read it: run chmod 0600 {path}"
