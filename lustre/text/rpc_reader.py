r"""``rpc_stats`` of many targets, read again and again: what differs from a text of the same form are numbers only.

The first text of a form is read by ``rpc_stats.parse``, and where its numbers stand is remembered. A later text of that
form, told by all that is no digit and by the labels of its tables, is cut into words and the numbers are picked out.
The result is the same, except that the table of offsets, which nobody watches, is left out.

>>> text = (b"read RPCs in flight:  2\n\n"
...         b"\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"
...         b"1:\t\t         1  33  33   |          0   0   0\n2:\t\t         2  66 100   |          0   0   0\n")
>>> reader = Reader()
>>> reader.read(text) == rpc_stats.parse(text)
True
>>> reader.read(text.replace(b"2  66", b"7  66")).pages_per_rpc.read
(1, 7)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from operator import itemgetter
from typing import NamedTuple

from lustre.text import histogram, rpc_stats
from lustre.text.histogram import Histogram
from lustre.text.rpc_stats import RpcStats

MOST_FORMS = 4096
"""More than a client of some thousand targets shows; a bound all the same."""
_FIELDS = [field.name for field in fields(RpcStats)]
_NOT_OF_THE_FORM = b"0123456789 \t"
_OFFSET = b"offset"
GAUGES = {
    b"read RPCs in flight": "read_in_flight",
    b"write RPCs in flight": "write_in_flight",
    b"DIO RPCs in flight": "dio_in_flight",
    b"modify_RPCs_in_flight": "modify_in_flight",
    b"pending read pages": "pending_read_pages",
    b"pending write pages": "pending_write_pages",
}

TABLES = {
    (b"pages per rpc", 2): "pages_per_rpc",
    (b"rpcs in flight", 2): "rpcs_in_flight",
    (rpc_stats.LATENCY, 2): "latency_usec",
    (b"rpcs in flight", 1): "modify_rpcs_in_flight",
}


class _Table(NamedTuple):
    field: int
    """Of ``RpcStats``."""
    known: Histogram
    columns: tuple[slice, ...]
    reached: tuple[int, ...]
    """Where the last row says how much of each column it has seen."""


class _Form(NamedTuple):
    words: int
    rows: tuple[tuple[slice, list[bytes]], ...]
    """The labels of each table, and the bars between its directions."""
    fixed: Callable[[Sequence[bytes]], tuple[bytes, ...]]
    """Others that must be what they were: what is no number, and rows that are not shown because they are empty."""
    fixed_words: tuple[bytes, ...]
    start: int | None
    gauges: tuple[tuple[int, int], ...]
    """Field of ``RpcStats``, word."""
    tables: tuple[_Table, ...]
    unshown: tuple[tuple[slice, ...], ...]
    """Columns of tables that are left out, but must be whole all the same."""
    like: list[object]
    """The fields of the first of this form."""

    def read(self, words: Sequence[bytes]) -> RpcStats | None:
        """The numbers of another of this form; None when it is none after all, or lost the end of a table."""
        if len(words) != self.words or self.fixed(words) != self.fixed_words:
            return None
        for place, known_words in self.rows:
            if words[place] != known_words:
                return None
        found = self.like.copy()
        if self.start is not None:
            found[0] = words[self.start]
        for field, word in self.gauges:
            found[field] = int(words[word])
        for field, known, places, reached in self.tables:
            columns = tuple([tuple(map(int, words[place])) for place in places])
            if len(known.uppers) > 1 and not any(column[-1] for column in columns):
                return None  # the kernel stops at the first row at which all is counted
            for column, word in zip(columns, reached, strict=True):
                if not known.overflow and words[word] != b"100" and any(column):
                    return None
            found[field] = Histogram(known.name, known.uppers, columns, known.overflow)
        return RpcStats(*found) if self._rest_is_whole(words) else None  # type: ignore[arg-type]

    def _rest_is_whole(self, words: Sequence[bytes]) -> bool:
        for places in self.unshown:
            last = [words[place.stop - place.step] for place in places]
            if not any(map(int, last)):
                return False
            for place in places:
                if words[place.stop - place.step + 2] != b"100" and any(map(int, words[place])):
                    return False
        return True


class Reader:
    """Keeps the forms it has met."""

    def __init__(self) -> None:
        self._forms: dict[int, _Form | None] = {}
        """By the hash of what is no number."""

    def read(self, data: bytes) -> RpcStats:
        """What ``rpc_stats.parse`` says of the text, without the table of offsets."""
        key = hash(data.translate(None, _NOT_OF_THE_FORM))
        form = self._forms.get(key)
        if form is not None and (found := form.read(data.split())) is not None:
            return found
        parsed = replace(rpc_stats.parse(data), offset=None)
        if len(self._forms) >= MOST_FORMS:
            self._forms.clear()
        self._forms[key] = _form(data, parsed)
        return parsed


def _form(data: bytes, parsed: RpcStats) -> _Form | None:
    """Where the numbers are; None when something in the text is unusual."""
    places = list(histogram.places(data))
    words = data.split()
    outlines = [place for table in places for place in _labels_and_bars(table)]
    of_rows = {number for place in outlines for number in range(len(words))[place]}
    fixed = [
        number for number, word in enumerate(words) if number not in of_rows and word.translate(None, b"0123456789.")
    ]
    if parsed.skipped or len(fixed) < 2 or any(place.rows < 1 for place in places):
        return None
    tables: list[_Table] = []
    for place in places:
        if place.name != _OFFSET:
            field = _FIELDS.index(TABLES.get((place.name, place.width), "skipped"))
            known = getattr(parsed, _FIELDS[field])
            if not isinstance(known, Histogram):
                return None
            stride, rows = 4 * place.width, len(known.uppers)
            reached = range(place.first + stride * (place.rows - 1) + 3, place.first + stride * place.rows, 4)
            tables.append(_Table(field, known, _columns(place, 0, rows), tuple(reached)))
            empty = _columns(place, rows, place.rows)
            fixed += [word for rows_ in empty for word in range(rows_.start, rows_.stop, rows_.step)]
    pick: Callable[[Sequence[bytes]], tuple[bytes, ...]] = itemgetter(*fixed)
    gauges = [(_FIELDS.index(GAUGES[m[1]]), len(data[: m.start(2)].split())) for m in rpc_stats.GAUGE.finditer(data)]
    form = _Form(
        words=len(words),
        rows=tuple([(place, words[place]) for place in outlines]),
        fixed=pick,
        fixed_words=pick(words),
        start=words.index(b"start_time:") + 1 if b"start_time:" in words else None,
        gauges=tuple(gauges),
        tables=tuple(tables),
        unshown=tuple([_columns(place, 0, place.rows) for place in places if place.name == _OFFSET]),
        like=[getattr(parsed, name) for name in _FIELDS],
    )
    return form if form.read(words) == parsed else None


def _labels_and_bars(place: histogram.Place) -> Iterator[slice]:
    stride = 4 * place.width
    end = place.first + stride * place.rows
    yield slice(place.first, end, stride)
    if place.width > 1:
        yield slice(place.first + 4, end, stride)


def _columns(place: histogram.Place, begin: int, end: int) -> tuple[slice, ...]:
    """Where the counts of these rows are, direction by direction."""
    stride = 4 * place.width
    first, last = place.first + stride * begin, place.first + stride * end
    return tuple([slice(first + column, last + column, stride) for column in range(1, stride, 4)])
