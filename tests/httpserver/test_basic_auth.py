"""Passwords: right, wrong, remembered, and no word about which part was wrong."""

import base64

import pytest

from httpserver.basic_auth import Users

bcrypt = pytest.importorskip("bcrypt")
SECRET = "$2b$04$YCWyXl3x8IdJujuoiYodu.aXKNCtaab/klU3XTGOANozQU0F24/ju"


def header(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def checks(monkeypatch) -> list[bytes]:
    """Every password that was really worked out."""
    seen: list[bytes] = []
    check_password = bcrypt.checkpw

    def check(password: bytes, stored: bytes) -> bool:
        seen.append(password)
        return check_password(password, stored)

    monkeypatch.setattr(bcrypt, "checkpw", check)
    return seen


def test_a_right_password_is_worked_out_once(checks) -> None:
    known = Users({"a": SECRET})
    assert all(known.user(header("a", "secret")) for _ in range(5))
    assert len(checks) == 1


def test_a_wrong_user_costs_what_a_wrong_password_costs(checks) -> None:
    known = Users({"a": SECRET})
    assert not known.user(header("nobody", "secret"))
    assert not known.user(header("a", "wrong"))
    assert not known.user(header("nobody", "secret"))
    assert len(checks) == 3


def test_one_who_logged_in_is_no_key_for_others() -> None:
    known = Users({"a": SECRET, "b": "$2b$04$r7mMLIdezFH1CqytnSf8GeEVjdm4kUw5ENOoJF5zTaN/ORJ408xIy"})
    assert known.user(header("a", "secret"))
    assert not known.user(header("b", "secret"))
    assert not known.user(header("a", "secre"))
    assert known.user(header("b", "new"))


@pytest.mark.parametrize("text", [
    "", "Basic", "Basic !", "Basic YQ==", "Bearer YTpzZWNyZXQ=", "Basic /zpzZWNyZXQ=", "Basic é", header("a", "\0"),
    header("a", "x" * 5000), header("", ""), header("a", ""),
])  # fmt: skip
def test_headers_that_let_nobody_in(text) -> None:
    assert not Users({"a": SECRET}).user(text)


def test_the_word_basic_may_be_written_as_one_likes() -> None:
    assert Users({"a": SECRET}).user(header("a", "secret").replace("Basic", "bAsIc"))
