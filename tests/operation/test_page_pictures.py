"""The pictures in the documentation are of the page as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import page_pictures

PICTURES = Path(__file__).parents[2] / "docs/pictures"


@pytest.mark.parametrize("picture", page_pictures.PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_of_the_present_page(picture: page_pictures.Picture) -> None:
    assert page_pictures.is_current((PICTURES / picture.name).read_bytes()), (
        "run: python -m scripts.page_pictures, and look at the pictures")


def test_a_picture_of_an_older_page_is_noticed() -> None:
    png = (PICTURES / page_pictures.PICTURES[0].name).read_bytes()
    assert not page_pictures.is_current(png.replace(page_pictures.digest(), b"0" * 64))
