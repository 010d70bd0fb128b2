"""A rule for many cases is one test, which lists all cases that break it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


def every(names: str, cases: Iterable[Any], ids: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Any]:
    """Takes the place of ``pytest.mark.parametrize``: ``@every("release, role", NODES)``. Fixtures are made once."""
    arguments = [name.strip() for name in names.split(",")]
    known = list(cases)

    def one_test(rule: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(rule)

        @wraps(rule)
        def test(**fixtures: Any) -> None:
            broken: list[str] = []
            for case in known:
                values = case if len(arguments) > 1 else (case,)
                try:
                    rule(**dict(zip(arguments, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all cases are looked at
                    broken.append(f"{ids(case)}: {type(error).__name__}: {error}")
            assert known, "a rule without cases"
            if broken:
                pytest.fail(f"{len(broken)} of {len(known)} cases:\n" + "\n".join(broken), pytrace=False)

        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        test.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return test

    return one_test
