"""Reads a PowerFlex gateway (VxFlex OS, ScaleIO): rebuilds below the OSTs, the state of its parts, and settings.

The requests and fields are those of the public REST API of releases 3 and 4, as Dell's open clients use them
(goscaleio, PyPowerFlex, powerflex-gen1-monitoring). They were not tried on the product. tierd only reads.

* Release 3: ``GET /api/login`` with user and password returns a token, which is the password of later requests.
* Release 4: ``POST /rest/auth/login`` returns ``access_token``, a bearer token.
* ``GET /api/types/TYPE/instances`` lists System, StoragePool, Volume, Sds, Sdc and Device.
* ``POST /api/instances/querySelectedStatistics`` returns rates (``{"numSeconds", "totalWeightInKb", "numOccured"}``,
  KiB) and capacities. It is the only POST besides the login, and changes nothing.

A token expires, which the gateway answers with 401: tierd then logs in once more. A field that is missing or has
another type is unknown. An answer of another form is an error, which is counted, and the answer before it is used until
it is ``stale_seconds`` old. Then tierd does not know whether a rebuild runs, and blames no job on these volumes.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import urlsplit

from annotated_types import Gt

from tierd.config.sense import ServerAccess, asks_http
from tierd.integrations.protocol import count_of, plain
from tierd.model import Table
from tierd.sense.http_client import HttpClient, SourceError, StatusError, read_secret
from tierd.validators import Seconds

Json = Mapping[str, object]
_OST = re.compile(r"([^/\s]+-)?OST[0-9a-f]{4}")
KIB = 1024
TYPES = ("application/json", "text/plain", "text/html")
"""The answer to a login of release 3 is a JSON string, sent with different types. Other text is no JSON."""
REFUSED = frozenset({401, 403})
EXPIRED = 401
LOGIN_AGAIN_SECONDS = 300.0
"""Time between two logins after the gateway refused the password, so that tierd does not lock the account."""
TUNABLES: Mapping[str, Sequence[str]] = {
    "Sds": ("sds_number_os_threads",),
    "Sdc": ("sdc_number_sockets_per_sds_ip", "sdc_number_network_os_threads", "sdc_max_inflight_requests",
            "sdc_max_inflight_data"),
}
"""Settings that the paper "Lustre on PowerFlex" names, by type of part."""


@dataclass(frozen=True)
class PowerFlexSettings(Table):
    """The gateway of a PowerFlex (VxFlex OS) system below the OSTs."""

    url: str = ""
    """``https://gateway.example.org``. Empty: it is not used."""
    release: Literal[3, 4] = 4
    """Release of the gateway, which decides how tierd logs in: 3 (also VxFlex OS and ScaleIO), or 4."""
    user: str = ""
    """User that may only read (role ``Monitor``)."""
    password_file: str = ""
    """File with its password. Its certificate is always verified."""
    ca_file: str = ""
    """CA certificates (PEM) for the gateway's certificate; empty: the system's certificates."""
    volumes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Targets on each volume: ``{"ost0" = ["OST0000"]}``."""
    timeout_seconds: Seconds = 10.0
    """Time limit of one answer."""
    stale_seconds: Seconds = 180.0
    """Age of the last answer above which tierd does not know whether a rebuild runs."""
    min_bytes_per_second: Annotated[float, Gt(0)] = 50e6
    """Rate from which a rebalance counts as work that slows applications. A rebuild always counts."""


def validated(settings: PowerFlexSettings) -> PowerFlexSettings:
    """The settings. Raises ValueError for an invalid or unsafe URL, and for invalid targets."""
    if not settings.url:
        return settings
    if not asks_http(settings.url) or not is_safe_url(settings.url):
        raise ValueError("url: give the whole address: https://gateway.example.org")
    if not settings.user or not settings.password_file:
        raise ValueError("user, password_file: the gateway needs both")
    named = [target for targets in settings.volumes.values() for target in targets]
    if wrong := [target for target in named if not _OST.fullmatch(target)]:
        raise ValueError(f"volumes: name targets as OST0000 or lustre-OST0000, not {wrong[0]!r}")
    if len(set(named)) < len(named):
        raise ValueError("volumes: each target is on one volume")
    return settings


def is_safe_url(url: str) -> bool:
    """Whether a password may be sent there: over TLS, or on this node.

    >>> [is_safe_url(url) for url in ("https://gw:443", "http://gw", "http://127.0.0.1:8080")]
    [True, False, True]
    """
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in {"localhost", "127.0.0.1", "::1"}


class Work(StrEnum):
    """What a storage pool does for itself, as the API names it. The values are labels of metrics."""

    FORWARD = "forward_rebuild"
    """After a failure: a new second copy."""
    BACKWARD = "backward_rebuild"
    """A device or server is back: its copy is brought up to date."""
    NORMAL = "normal_rebuild"
    REBALANCE = "rebalance"


FIELDS: Mapping[Work, tuple[str, str, str]] = {
    work: (f"{short[0].lower()}{short[1:]}WriteBwc", f"active{short}CapacityInKb", f"pending{short}CapacityInKb")
    for work, short in zip(Work, ("FwdRebuild", "BckRebuild", "NormRebuild", "Rebalance"), strict=True)
}
"""Statistics of each work: the rate at which it writes, and the data that it processes now and that waits."""
POOL_PROPERTIES = (
    *[name for names in FIELDS.values() for name in names], "maxCapacityInKb", "capacityInUseInKb",
    "degradedHealthyCapacityInKb", "degradedFailedCapacityInKb", "failedCapacityInKb",
)
VOLUME_PROPERTIES = ("userDataReadBwc", "userDataWriteBwc")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the system as the gateway shows it: a pool, a volume, a data server… Unknown values are None or ""."""

    name: str
    shown: Json
    """Its fields and statistics, by their names in the API."""
    pool: str = ""
    """Name of the storage pool of a volume."""

    def text(self, field: str) -> str:
        return text_of(self.shown.get(field))

    def is_connected(self, field: str) -> bool | None:
        return self.text(field) == "Connected" if self.text(field) else None

    def is_in_maintenance(self, field: str) -> bool | None:
        return self.text(field) != "NoMaintenance" if self.text(field) else None

    def count(self, field: str) -> int | None:
        return count_of(self.shown.get(field))

    def size_bytes(self, field: str) -> int | None:
        kib = self.count(field)
        return None if kib is None else KIB * kib

    def bytes_per_second(self, field: str) -> float | None:
        return rate_of(self.shown.get(field))

    def setting(self, name: str) -> int | None:
        """One of :data:`TUNABLES`. How a gateway spells them is not documented."""
        return next((count_of(value) for key, value in self.shown.items()
                     if key.replace("_", "").lower() == name.replace("_", "")), None)


@dataclass(frozen=True, slots=True)
class PowerFlexSystem:
    """One answer of the gateway."""

    parts: Mapping[str, Sequence[Part]] = field(default_factory=dict)
    """By type of the API. The system has the fields of its ``mdmCluster`` too."""

    @property
    def whole(self) -> Part:
        return next(iter(self.of("System")), Part("", {}))

    def of(self, kind: str) -> Sequence[Part]:
        return self.parts.get(kind, ())


class ErrorKind(StrEnum):
    """Reasons of failed requests, for metrics."""

    LOGIN = "login"
    STATUS = "status"
    """An answer with an error status."""
    CONNECTION = "connection"
    """No complete answer in time."""
    ANSWER = "answer"
    """An answer of another form."""


class GatewayError(SourceError):
    """A failed request of a known kind. A plain SourceError counts as ``STATUS`` or ``CONNECTION``, by its type."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


# -- Parsing. Unknown is None; another form of the answer raises GatewayError.


def records(body: bytes, what: str) -> list[Json]:
    """The instances of a type, each id once. Raises GatewayError."""
    found = _json(body, what)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise GatewayError(ErrorKind.ANSWER, f"{what}: not a list of instances")
    return [*{text_of(one.get("id")) or number: one for number, one in enumerate(found)}.values()]


def statistics(body: bytes) -> Mapping[str, Mapping[str, Json]]:
    """Statistics by type and id. Raises GatewayError."""
    found = _json(body, "statistics")
    if not isinstance(found, dict):
        raise GatewayError(ErrorKind.ANSWER, "statistics: not an object")
    return {kind: {name: one for name, one in of_kind.items() if isinstance(one, dict)}
            for kind, of_kind in found.items() if isinstance(of_kind, dict)}


def _json(body: bytes, what: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise GatewayError(ErrorKind.ANSWER, f"{what}: no JSON, or incomplete") from error


def text_of(value: object) -> str:
    """A text as metrics take it; "" for anything else."""
    return plain(value) if isinstance(value, str) else ""


def rate_of(value: object) -> float | None:
    """Bytes per second of ``{"numSeconds": 5, "totalWeightInKb": 100, …}``; None if unknown.

    >>> rate_of({"numSeconds": 5, "totalWeightInKb": 100}), rate_of({"numSeconds": 0, "totalWeightInKb": 0}), rate_of(7)
    (20480.0, 0.0, None)
    """
    if not isinstance(value, dict):
        return None
    seconds, kib = count_of(value.get("numSeconds")), count_of(value.get("totalWeightInKb"))
    if seconds is None or kib is None:
        return None
    return KIB * kib / seconds if seconds else 0.0


def name_of(record: Json) -> str:
    """Name of an instance. Names may be missing, ids are not."""
    return text_of(record.get("name")) or text_of(record.get("sdcIp")) or text_of(record.get("id"))


def system_of(instances: Mapping[str, Sequence[Json]], numbers: Mapping[str, Mapping[str, Json]]) -> PowerFlexSystem:
    """The state of the system, from instances by type and statistics by type and id."""
    pools = {text_of(one.get("id")): name_of(one) for one in instances.get("StoragePool", ())}
    count = Counter(pools.values())  # protection domains may have pools of the same name
    pools = {key: name if count[name] == 1 else f"{name} ({key})" for key, name in pools.items()}
    parts: dict[str, list[Part]] = {}
    for kind, found in instances.items():
        for one in found:
            key, cluster = text_of(one.get("id")), one.get("mdmCluster")
            shown = {**one, **(cluster if isinstance(cluster, dict) else {}), **numbers.get(kind, {}).get(key, {})}
            name = pools[key] if kind == "StoragePool" else name_of(one)
            parts.setdefault(kind, []).append(Part(name, shown, pools.get(text_of(one.get("storagePoolId")), "")))
    return PowerFlexSystem(parts)


# -- Requests.


class Gateway:
    """Requests to the gateway, with one token until it expires."""

    def __init__(self, settings: PowerFlexSettings, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        access = ServerAccess(ca_file=settings.ca_file)
        self._client = HttpClient(access, settings.timeout_seconds, {})
        self._url = settings.url.rstrip("/")
        self._token = ""
        self._refused_at: float | None = None
        self.errors: Counter[ErrorKind] = Counter()
        """Failed requests since the start, by kind."""

    def read(self) -> PowerFlexSystem:
        """The state of the system now. Raises SourceError."""
        try:
            instances = {kind: records(self._request("GET", f"/api/types/{kind}/instances"), kind)
                         for kind in ("System", "StoragePool", "Volume", "Sds", "Sdc", "Device")}
            wanted = [{"type": kind, "allIds": "", "properties": [*properties]}
                      for kind, properties in (("StoragePool", POOL_PROPERTIES), ("Volume", VOLUME_PROPERTIES))]
            body = json.dumps({"selectedStatisticsList": wanted}).encode()
            numbers = statistics(self._request("POST", "/api/instances/querySelectedStatistics", body))
        except SourceError as error:
            usual = ErrorKind.STATUS if isinstance(error, StatusError) else ErrorKind.CONNECTION
            self.errors[error.kind if isinstance(error, GatewayError) else usual] += 1
            raise
        return system_of(instances, numbers)

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        if self._token:
            try:
                return self._send(method, path, body, self._credentials())
            except StatusError as error:
                if error.status != EXPIRED:
                    raise
        self._login()
        try:
            return self._send(method, path, body, self._credentials())
        except StatusError as error:
            if error.status not in REFUSED:
                raise
            raise GatewayError(ErrorKind.LOGIN, str(error)) from error

    def _login(self) -> None:
        self._token = ""
        if self._refused_at is not None and 0 <= self._now() - self._refused_at < LOGIN_AGAIN_SECONDS:
            raise GatewayError(ErrorKind.LOGIN, f"{self._url}: the password was refused; tierd tries it again after "
                                                f"{LOGIN_AGAIN_SECONDS:g} s")
        user = self._settings.user
        try:
            password = read_secret(self._settings.password_file, "", {}, "password")
        except SourceError as error:
            raise GatewayError(ErrorKind.LOGIN, str(error)) from error
        try:
            if self._settings.release == 3:
                token = _json(self._send("GET", "/api/login", None, _basic(user, password)), "login")
            else:
                form = json.dumps({"username": user, "password": password}).encode()
                answer = _json(self._send("POST", "/rest/auth/login", form, {}), "login")
                token = answer.get("access_token") if isinstance(answer, dict) else None
        except StatusError as error:
            if error.status in REFUSED:
                self._refused_at = self._now()
            raise GatewayError(ErrorKind.LOGIN, str(error)) from error
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
            raise GatewayError(ErrorKind.ANSWER, f"{self._url}: the login returned no token: is it release "
                                                 f"{self._settings.release}?")
        self._token, self._refused_at = token, None

    def _credentials(self) -> dict[str, str]:
        if self._settings.release == 3:
            return _basic(self._settings.user, self._token)
        return {"Authorization": f"Bearer {self._token}"}

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        sent = {"Accept": "application/json", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        return self._client.send(method, self._url + path, TYPES, body, sent).body


def _basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}
