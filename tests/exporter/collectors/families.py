"""Where parameters lie, and the samples of one family."""

from typing import Any

DEBUG = "sys/kernel/debug/lustre"
SYSFS = "sys/fs/lustre"
MOUNT = "ffff9f0a8c3d1800"


def shown(samples, text: bytes, name: str, *labels: str) -> dict[Any, str]:
    """{requested labels: value} of one family."""
    found = {}
    for (family, pairs), value in samples(text).items():
        if family == name:
            key = tuple(dict(pairs).get(label, "") for label in labels)
            found[key[0] if len(key) == 1 else key] = value
    return found
