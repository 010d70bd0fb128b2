"""Files to be moved, and a move of one of them."""

from __future__ import annotations

from pathlib import Path

from lustre.layout.model import Layout
from tests.acceptance.site import Site, long_ago
from tierd.act.movers.moves import Move, MoveOutcome, Mover


def moved(engine: Mover, site: Site, place: Path, layout: Layout) -> MoveOutcome:
    (outcome,) = engine.move([Move(site.name(place), layout)])
    return outcome


def made(site: Site, place: Path, data: bytes, shape: str = "") -> Path:
    if shape:
        site.lfs("setstripe", *shape.format(flash=site.flash, hdd=site.hdd).split(), str(place))
    with place.open("r+b" if shape else "wb") as file:
        file.write(data)
    return long_ago(place)
