"""Settings that are valid one by one and cannot work together, or that were certainly meant otherwise.

Pure: reads settings and the tables of the file, and nothing of this machine. ``tierd.daemon.online_check`` compares
settings with the file system and the servers that they name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from tierd.config.sense import ServerAccess
from tierd.config.settings import Settings

Location = tuple[int | str, ...]
POOL_NAME_BYTES_MAX = 15
"""``LOV_MAXPOOLNAME`` in ``lustre_user.h``."""
RESERVED_POOLS = frozenset({"ignore", "inherit", "none"})
"""Names that ``lctl pool_new`` refuses (Lustre 2.15 and later: ``lov_pool_is_reserved``)."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What is wrong, where, and what to write instead."""

    location: Location
    """The setting to change."""
    sentence: str
    fatal: bool = True
    """Whether tierd refuses the configuration. Otherwise it warns."""
    others: tuple[Location, ...] = ()
    """Further settings that it is about. If one of them is invalid, this contradiction is not reported."""


def contradictions(settings: Settings, values: Mapping[str, object]) -> Iterator[Contradiction]:
    """All contradictions. ``values`` are the merged tables of the files."""
    for check in (thresholds, pools, sources, ages, addresses, acts, readers):
        yield from check(settings, values)


def readers(settings: Settings, _: object) -> Iterator[Contradiction]:
    """Changelog readers without a cluster, or without records to read."""
    if not settings.reader.enabled:
        return
    if not settings.cluster.enabled:
        yield Contradiction(("reader", "enabled"), "readers send their tallies through NATS: set cluster.servers",
                            others=(("cluster", "servers"),))
    if settings.sense.watch:
        yield Contradiction(("sense", "watch"), "watched directories and readers cannot be used together: remove one",
                            others=(("reader", "enabled"),))
    missing = sorted({*settings.sense.mdts} - settings.sense.readers.keys())
    if missing:
        yield Contradiction(("sense", "readers"), f"no user for {', '.join(missing)}: readers clear nothing there, and "
                            "the changelog grows until Lustre drops it", fatal=False, others=(("sense", "mdts"),))


def value_at(values: object, location: Sequence[int | str]) -> object:
    """The value at this location; None if the files have none.

    >>> value_at({"web": {"port": 1}}, ("web", "port")), value_at({"web": {}}, ("web", "port"))
    (1, None)
    """
    found: Any = values
    for part in location:
        inside = range(len(found)) if isinstance(found, list | tuple) else found if isinstance(found, Mapping) else ()
        if part not in inside:
            return None
        found = found[part]
    value: object = found
    return value


def one_that_is_set(values: Mapping[str, object], *locations: Location) -> Location:
    """The first of these locations that the files have, or else the first."""
    return next((each for each in locations if value_at(values, each) is not None), locations[0])


def thresholds(settings: Settings, values: Mapping[str, object]) -> Iterator[Contradiction]:
    """Thresholds at which a finding begins (``enter…``) and ends (``leave…``) that are the wrong way round.

    The defaults show which of the two is the higher one.
    """
    pairs: list[tuple[Location, object, str, str]] = [
        (("noisy_neighbour",), settings.noisy_neighbour, "probability", "end_probability")]
    for configured in settings.policies:
        names = {each.name for each in fields(configured.settings)}
        pairs += [(("detect", configured.policy.table), configured.settings, enter, leave) for enter in sorted(names)
                  if (leave := f"leave{enter.removeprefix('enter')}") in names and enter.startswith("enter")]
    for above, table, enter, leave in pairs:
        (begins, ends), defaults = (getattr(table, enter), getattr(table, leave)), type(table)()
        higher = getattr(defaults, enter) > getattr(defaults, leave)
        if (begins < ends) if higher else (begins > ends):
            side, order = ("below", "higher") if higher else ("above", "lower")
            yield Contradiction(
                one_that_is_set(values, (*above, leave), (*above, enter)),
                f"a finding begins at {enter} = {begins:g} and would end {side} {leave} = {ends:g}, which is "
                f"wrong: {enter} must be the {order} one. Exchange them", others=((*above, enter), (*above, leave)))


def pools(settings: Settings, values: Mapping[str, object]) -> Iterator[Contradiction]:
    """Names that no pool can have, and limits of pools that no scope uses."""
    named = pools_by_location(settings, values)
    yield from (Contradiction(location, why) for location, name in named.items() if (why := why_no_pool_name(name)))
    configured = set(named.values())
    limits: list[tuple[Location, Iterable[str]]] = [(("limits", "pools"), settings.limits.pools)]
    limits += [(("scopes", number, "limits", "pools"), scope.limits.pools)
               for number, scope in enumerate(settings.scopes) if scope.limits is not None]
    for above, names in limits:
        for name in names:
            if name not in configured:
                yield Contradiction((*above, name), f"tierd does not use a pool {name!r}, so this limit has no effect; "
                                    f"pools in use: {', '.join(sorted(configured))}", fatal=False)


def pools_by_location(settings: Settings, values: Mapping[str, object]) -> dict[Location, str]:
    """The settings that name a pool, with the names. A scope has those that it does not inherit."""
    policy, general = "small_files_to_flash", settings.small_files_to_flash
    found: dict[Location, str] = {(policy, "flash_pool"): general.flash_pool, (policy, "hdd_pool"): general.hdd_pool}
    own = {("scopes", number, policy, key): getattr(scope.small_files_to_flash, key)
           for number, scope in enumerate(settings.scopes) for key in ("flash_pool", "hdd_pool")}
    return found | {location: pool for location, pool in own.items() if value_at(values, location) is not None}


def why_no_pool_name(name: str) -> str:
    """Why a pool cannot have this name; "" if it can.

    >>> why_no_pool_name("flash"), why_no_pool_name("lustre.flash")
    ('', "write the pool without the name of the file system: 'flash' (it is 'lustre.flash')")
    >>> why_no_pool_name("fast and expensive")
    "a pool's name has no spaces and no / (it is 'fast and expensive')"
    """
    if not name:
        return ""  # reported already
    if "." in name:
        return f"write the pool without the name of the file system: {name.rpartition('.')[2]!r} (it is {name!r})"
    if "/" in name or " " in name or not name.isprintable():
        return f"a pool's name has no spaces and no / (it is {name!r})"
    if len(name.encode()) > POOL_NAME_BYTES_MAX:
        return f"a pool's name has {POOL_NAME_BYTES_MAX} characters at most (it is {name!r})"
    return f"Lustre reserves this name; no pool has it (it is {name!r})" if name in RESERVED_POOLS else ""


def sources(settings: Settings, _: object) -> Iterator[Contradiction]:
    """Sources that exclude each other, and credentials that are incomplete."""
    sense = settings.sense
    if sense.prometheus.url:
        for name in ("exporters", "exporter_files"):
            if getattr(sense, name):
                yield Contradiction(("sense", name), "tierd reads Prometheus, not exporters, while "
                                    "sense.prometheus.url is set: remove one of the two", fatal=False,
                                    others=(("sense", "prometheus", "url"),))
    yield from credentials(sense.exporter_access, ("sense", "exporter_access"))
    yield from credentials(sense.prometheus.access, ("sense", "prometheus", "access"))
    for mdt in sense.readers:
        if sense.mdts and mdt not in sense.mdts:
            yield Contradiction(("sense", "readers", mdt), f"the changelog of {mdt} is not read: add it to sense.mdts",
                                fatal=False, others=(("sense", "mdts"),))


def credentials(access: ServerAccess, above: Location) -> Iterator[Contradiction]:
    """A user without a password, a password without a user, and two kinds of credentials at once."""
    has_password = bool(access.password_file or access.password_env)
    has_token = bool(access.token_file or access.token_env)
    every = tuple((*above, name) for name in ("user", "password_file", "password_env", "token_file", "token_env"))

    def wrong(name: str, sentence: str, *, fatal: bool = True) -> Contradiction:
        return Contradiction((*above, name), sentence, fatal, every)

    password = "password_file" if access.password_file else "password_env"
    token = "token_file" if access.token_file else "token_env"
    if access.user and not has_password:
        yield wrong("user", f"the user {access.user!r} has no password: set password_file")
    if has_password and not access.user:
        yield wrong(password, "there is a password but no user: set user")
    if has_token and (access.user or has_password):
        yield wrong(token, "a server accepts a token, or a user with a password, not both: remove one of the two")
    for kind in ("password", "token"):
        if getattr(access, f"{kind}_file") and getattr(access, f"{kind}_env"):
            yield wrong(f"{kind}_env", f"{kind}_file is used and {kind}_env is ignored: remove one of the two",
                        fatal=False)
    if access.key_file and not access.cert_file:
        yield wrong("key_file", "a key needs its certificate: set cert_file")


def ages(settings: Settings, values: Mapping[str, object]) -> Iterator[Contradiction]:
    """Times that are longer than the age at which data are too old, and thresholds that can never be reached."""
    sense, stale = settings.sense, ("sense", "stale_seconds")
    for name, what in (("timeout_seconds", "an answer that takes this long"), ("cycle_seconds", "every reading")):
        chosen = name == "cycle_seconds" or value_at(values, ("sense", name))
        if getattr(sense, name) >= sense.stale_seconds and chosen:
            location = one_that_is_set(values, ("sense", name), stale)
            yield Contradiction(location, f"{what} would be too old: {name} = {getattr(sense, name):g} must be shorter "
                                f"than stale_seconds = {sense.stale_seconds:g}", others=(("sense", name), stale))
    if settings.verify.harm_seconds > settings.verify.judge_seconds:
        judge = ("verify", "judge_seconds")
        yield Contradiction(
            one_that_is_set(values, ("verify", "harm_seconds"), judge),
            f"tierd looks for harm only before the verdict: harm_seconds = {settings.verify.harm_seconds:g} should not "
            f"exceed judge_seconds = {settings.verify.judge_seconds:g}", fatal=False,
            others=(("verify", "harm_seconds"), judge))


def addresses(settings: Settings, _: object) -> Iterator[Contradiction]:
    """A port that everybody can read, and addresses of exporters that are certainly meant otherwise."""
    web, address = settings.web, settings.web.address
    if web.enabled and not web.config_file and not is_loopback(address):
        yield Contradiction(("web", "address"), "anyone on the network can read this port: set a config_file with TLS "
                            "and passwords, or use 127.0.0.1", fatal=False, others=(("web", "config_file"),))
    if web.change_users and not web.config_file:
        yield Contradiction(("web", "change_users"), "without passwords the page has no buttons: set config_file",
                            fatal=False, others=(("web", "config_file"),))
    for key in ("exporters", "clients"):
        urls = getattr(settings.sense, key)
        for number, url in enumerate(urls):
            if url in urls[:number]:
                yield Contradiction(("sense", key, number), f"{url} is listed twice: remove one entry", fatal=False)
            elif urlsplit(url).path in {"", "/"}:
                yield Contradiction(("sense", key, number), f"the metrics are at {url.rstrip('/')}/metrics: add "
                                    "/metrics", fatal=False)


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches the address. "" is every address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def acts(settings: Settings, _: object) -> Iterator[Contradiction]:
    """Kinds of findings to act on, whose policy is off; and directories that no file is below."""
    off = {configured.policy.name for configured in settings.policies if not configured.settings.enabled}
    for number, kind in enumerate(settings.act.on):
        if kind in off:
            yield Contradiction(("act", "on", number), f"the policy {kind} is off, so tierd finds nothing to act on: "
                                f"remove it here, or set enabled = true in [detect.{kind.replace('-', '_')}]",
                                fatal=False)
    for name, table in settings.tables.by_name.items():
        for number, directory in enumerate(getattr(table, "directories", ())):
            if not directory.startswith("/"):
                yield Contradiction((name, "directories", number),
                                    f"a directory begins with / at the root of the file system (it is {directory!r})")
