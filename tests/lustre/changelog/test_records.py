"""Every recorded changelog record, in the form of the character device and as the library repacks it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lustre.changelog.record import Record, RecordType, decode
from lustre.fid import Fid
from lustre.nid import nid_text

CHANGELOGS = Path(__file__).parent.parent.parent / "captures" / "2.17.57" / "changelog"
MDTS = ("lustre-MDT0000", "lustre-MDT0001")
FORMS = ("chardev", "llapi_full", "llapi_jobid", "llapi_nid_be", "llapi_plain")

everything = pytest.mark.parametrize(("mdt", "form"), [(mdt, form) for mdt in MDTS for form in FORMS])
@cache
def rows(mdt: str, form: str) -> list[dict[str, Any]]:
    with (CHANGELOGS / f"{mdt}.{form}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def expected(row: dict[str, Any]) -> Record:
    """The record a line of the recording describes; each character of a name there is a byte."""
    name, _, source_name = row["name_raw"].encode("latin-1").partition(b"\0")
    large = int(row.get("extra", "0"), 16) & 16 != 0
    return Record(
        index=row["index"],
        type=RecordType(row["type"]),
        time=row["time"] + row["nsec"] / 1e9,
        flags=int(row["flags"], 16) & 0xFFF,
        target=Fid.parse(row["tfid"]),
        parent=Fid.parse(row["pfid"]),
        name=name,
        source=Fid.parse(row["sfid"]) if "sfid" in row else None,
        source_parent=Fid.parse(row["spfid"]) if "spfid" in row else None,
        source_name=source_name,
        job_id=row.get("jobid", "").encode(),
        uid=row.get("uid"),
        gid=row.get("gid"),
        nid=nid_text(bytes.fromhex(row["nid"]), large=large) if "nid" in row else "",
        open_mode=int(row["openflags"], 16) if "openflags" in row else None,
        xattr_name=row.get("xattr", "").encode(),
        previous=row["prev"],
        nanosecond=row["nsec"],
    )


@everything
def test_every_recorded_record(mdt: str, form: str) -> None:
    recorded = rows(mdt, form)
    data = b"".join(bytes.fromhex(row["hex"]) for row in recorded)
    records, consumed = decode(data)
    assert consumed == len(data)
    assert records == [expected(row) for row in recorded]
