"""Jobs and clusters from the tables of a TOML file. Pydantic checks them, and each mistake has its place.

Every key is a field of a settings class, and a nested table is a nested class. Sizes may be text: ``"4M"``. A layout is
a list of tables, one for each component; ``mirror_id`` distinguishes mirrors.

The table ``[cluster]`` has the targets with their devices and pools, and the number of clients::

    [cluster]
    release = "2.15"
    [[cluster.ost]]
    count = 4
    pool = "hdd"
    size = "180T"
    device = {kind = "raid", disks = 41}
    [[cluster.mdt]]
    count = 2
    [cluster.client]
    count = 64
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from lustre.layout.size import parse_size
from simulator.clients.mount import ClientSettings
from simulator.jobs import Job
from simulator.ranges import AtLeastOne
from simulator.releases import RELEASES
from simulator.servers.mdt import MdtSettings
from simulator.servers.ost import OstSettings
from simulator.settings import ClusterSettings

T = TypeVar("T")
Place = tuple[str | int, ...]
Mistake = tuple[Place, str]
"""Keys and numbers of tables from the top of the file, and what is wrong there."""
STRICT = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
JOB: TypeAdapter[Job] = TypeAdapter(Job, config=STRICT)
PoolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{0,15}$")]
SIZES = frozenset({"size", "sizes", "extent_start", "extent_end", "stripe_size"})
"""Keys of sizes, besides those that end with ``bytes``."""
_PLAIN = {"a valid array": "a list", "an object": "a table", "a valid boolean": "true or false", "a valid ": "a ",
          " after validation": ""}
"""Words for those of pydantic."""


def sentence(mistake: Mistake) -> str:
    """A mistake after its place.

    >>> sentence((("job", 1, "threads"), "is no number"))
    'job 2.threads: is no number'
    """
    place, text = mistake
    name = "".join(f" {part + 1}" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    return f"{name}: {text}" if name else text


def read(reader: TypeAdapter[T], table: object, where: Place, wrong: list[Mistake]) -> T | None:
    """What a table describes. Returns None for bad values, and adds the mistakes to ``wrong``.

    >>> wrong = []
    >>> read(JOB, {"kind": "ls", "names": 0, "colour": 1}, ("job", 0), wrong)
    >>> [sentence(each) for each in wrong]
    ['job 1.names: must be greater than or equal to 1, not 0', 'job 1.colour: there is no such key']
    """
    kind = table.get("kind") if isinstance(table, Mapping) else None
    try:
        return reader.validate_json(json.dumps(prepared(table), default=str))
    except ValidationError as error:
        wrong += [((*where, *_in_file(each["loc"], kind)), _described(each))
                  for each in error.errors(include_url=False)]
        return None


def _in_file(place: Place, kind: object) -> Place:
    """A place as it is in the file: pydantic adds kinds, and the components of a layout."""
    own = place[1:] if place[:1] == (kind,) else place
    return tuple(part for before, part in zip(("", *own), own, strict=False)
                 if part != "components" and before not in {"device", "journal_device"})


def _described(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            return "there is no such key"
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return "is missing"
        case "union_tag_not_found":
            return "kind is missing"
        case "union_tag_invalid":
            return f"kind {context['tag']!r} is not one of {context['expected_tags']}"
    words = re.sub(r"^\w+ should", "must", error["msg"])
    for programmers, plain in _PLAIN.items():
        words = words.replace(programmers, plain)
    return words if isinstance(error["input"], dict | list) else f"{words}, not {error['input']!r}"


def prepared(value: Any, key: str = "") -> Any:
    """A table with sizes as numbers, and with layouts in the form of :class:`Layout`.

    >>> prepared({"sizes": ["4K"], "layout": [{"extent_end": "1M", "pool": "hdd"}]})["layout"]["components"]
    [{'extent_end': 1048576, 'pool': 'hdd'}]
    """
    if isinstance(value, Mapping):
        return {name: prepared(each, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        parts = [prepared(each, key) for each in value]
        if not (parts and key.endswith("layout")) or not all(isinstance(part, Mapping) for part in parts):
            return parts
        return {"components": parts, "mirror_count": len({part.get("mirror_id", 0) for part in parts}),
                "composite": len(parts) > 1 or any(str(part.get("pattern")).startswith("mdt") for part in parts)}
    if isinstance(value, str) and (key in SIZES or key.endswith("bytes")):
        with suppress(ValueError):
            return parse_size(value)
    return value


@dataclass(frozen=True, slots=True)
class _OstTable(OstSettings):
    count: AtLeastOne = 1
    pool: PoolName = ""


@dataclass(frozen=True, slots=True)
class _MdtTable(MdtSettings):
    count: AtLeastOne = 1


@dataclass(frozen=True, slots=True)
class _ClientTable(ClientSettings):
    count: AtLeastOne = 1


_USUAL = ClusterSettings((), {})


class _ClusterTable(BaseModel):
    model_config = STRICT

    ost: Annotated[list[_OstTable], MinLen(1)]
    mdt: list[_MdtTable] = [_MdtTable()]
    client: _ClientTable = _ClientTable()
    release: Annotated[str, Field(pattern=f"^({'|'.join(map(re.escape, RELEASES))})$")] = "2.17"
    fsname: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,8}$")] = _USUAL.fsname
    partitions: AtLeastOne = 1


_CLUSTER = TypeAdapter(_ClusterTable)


def cluster_from(table: Mapping[str, Any], wrong: list[Mistake]) -> ClusterSettings | None:
    """Read a cluster. Returns None for bad values, and adds the mistakes to ``wrong``."""
    osts = table.get("ost", [])
    whole = {**table, "ost": [_sized(each) for each in osts] if isinstance(osts, list) else osts}
    described = read(_CLUSTER, whole, ("cluster",), wrong)
    if described is None:
        return None
    pools = [ost.pool for ost in described.ost for _ in range(ost.count)]
    client = described.client
    return ClusterSettings(
        tuple(ost for ost in described.ost for _ in range(ost.count)),
        {pool: tuple(index for index, each in enumerate(pools) if each == pool)
         for pool in dict.fromkeys(pools) if pool},
        fsname=described.fsname, mdts=tuple(mdt for mdt in described.mdt for _ in range(mdt.count)),
        clients=tuple(
            replace(client, instance=f"ff11{number:012x}", nid=f"10.1.{number // 250}.{number % 250 + 2}@o2ib",
                    mount_point=client.mount_point if number == 0 else f"{client.mount_point}{number + 1}")
            for number in range(client.count)),
        version=RELEASES[described.release], partitions=described.partitions)


def _sized(ost: Any) -> Any:
    """The table of an OST, with its size as that of its device and as its capacity."""
    if not isinstance(ost, Mapping):
        return ost
    size, device = prepared(ost.get("size", 1 << 40), "size"), ost.get("device")
    inodes = ost.get("inodes", max(size >> 16, 4096) if isinstance(size, int) else size)
    return {
        **{key: value for key, value in ost.items() if key not in {"size", "inodes"}},
        "capacity": {"size_bytes": size, "inodes": inodes},
        "device": {"size_bytes": size, **device} if isinstance(device, Mapping) else device,
    }
