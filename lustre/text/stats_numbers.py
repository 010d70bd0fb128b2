r"""``stats`` as bare numbers: the first text of a form says what they are (``lustre.text.outline``).

>>> text = b"req_waittime     7 samples [usecs] 1 9 30 900\n"
>>> outline_of(text, [1, 0]).text  # the sum, then the samples
b'req_waittime \x0e\x02 samples [usecs] \x08 \x08 \x02 \x08\n'
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lustre.text import header, outline
from lustre.text.outline import COUNTED, SIGNED, WANTED, Outline, Place
from lustre.text.stats import COUNTER

_OF_SQUARES = re.compile(rb" (-?\d{1,20})")
_CLIPPED = b"9223372036854775807"


def outline_of(data: bytes, wanted: Sequence[int]) -> Outline | None:
    """The outline of a text every line of which is a counter.

    ``wanted`` are those of its values that are taken out, in this order: places among the samples of all counters,
    followed by the sums of all. None when a sum has wrapped, since it then is no sum.
    """
    head = header.split(data)
    places: list[Place] = list(outline.times(data))
    rows = list(COUNTER.finditer(data, head.end))
    rank = {value: i for i, value in enumerate(wanted)}
    order = [0] * bool(head.start_time)
    if len(rank) < len(wanted):
        return None

    def add(span: tuple[int, int], value: int) -> None:
        places.append((*span, WANTED if value in rank else COUNTED))
        if value in rank:
            order.append(bool(head.start_time) + rank[value])

    for i, row in enumerate(rows):
        add(row.span(2), i)
        if row[6] is None:
            continue
        if row[6][:1] == b"-" or row[6] == _CLIPPED:
            return None
        places += [(*row.span(4), SIGNED), (*row.span(5), SIGNED)]
        add(row.span(6), len(rows) + i)
        squares = _OF_SQUARES.match(data, row.end(6))
        if squares is not None:
            places.append((*squares.span(1), SIGNED))
    return outline.of(data, places, order)
