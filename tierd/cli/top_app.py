"""The screens of ``tierctl top`` and their keys.

The daemon is asked in a thread, so keys work while it does not answer. All that it sends is shown as
:class:`rich.text.Text` of printable characters: Textual would read markup in plain strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Input, Sparkline, Static

from tierd.cli.client import time_text
from tierd.cli.top_tables import COLUMN_GAP, Past, Rows, Source, cases_of, rate_rows
from tierd.clock import SystemClock
from tierd.daemon.answers import AboutAnswer, Ask, Json, RatesAnswer
from tierd.text import bytes_text, printable

LEAST_SECONDS = 0.2
ANSWER_SECONDS = 10.0
"""Limit of one request."""
SLOW_SECONDS = 3.0
"""A daemon that takes longer to answer is called slow."""
BOTH_TABLES_HEIGHT = 20
"""On a lower terminal, only the table with the cursor is shown."""


STEPS = Binding("left", "app.step(-1)", "Earlier"), Binding("right", "app.step(1)", "Later")


class Listing(DataTable[Text]):
    """A table with a cursor, an order and a filter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *STEPS, Binding("s", "sort", "Sort"), Binding("r", "reverse", "Reverse", show=False),
        Binding("home", "scroll_top", show=False), Binding("end", "scroll_bottom", show=False)]

    def __init__(self, what: str) -> None:
        super().__init__(id=what, cursor_type="row", cell_padding=COLUMN_GAP // 2)
        self._found: Rows | None = None
        self._by, self._reverse, self.words = "", False, ""

    @property
    def chosen(self) -> str:
        """Name of the row with the cursor; "" for none."""
        if self._found is None or not self.row_count:
            return ""
        return self._found.names[int(str(self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value))]

    def put(self, found: Rows | None = None) -> None:
        """Show these rows, or the same ones in another order. The cursor stays on its target or job, or at the top."""
        before, top = self.chosen if self.cursor_row else "", self.scroll_y
        self._found = found or self._found
        if self._found is None:
            return
        shown, wanted = self._found.fitting(self.size.width - COLUMN_GAP), self._found.chosen(
            self.words, self._by, reverse=self._reverse)
        self.clear(columns=True)
        for column in shown:
            title = Text(column.title, "bold" if column.title == self._by else "", justify=column.side)
            self.add_column(title, width=min(column.width, self.size.width - COLUMN_GAP), key=column.title)
        for number in wanted:
            self.add_row(*(column.cells[number] for column in shown), key=str(number))
        names = [self._found.names[number] for number in wanted]
        self.move_cursor(row=names.index(before) if before in names else 0, scroll=False)
        if before in names:
            self.scroll_to(y=top, animate=False, immediate=True, force=True)
        order = f", by {self._by}" * bool(self._by) + ", reversed" * self._reverse
        self.border_title = Text(f"{len(wanted)} of {self._found.all_rows} {self._found.what}{order}").markup

    def on_resize(self) -> None:
        self.put()

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        by = str(event.column_key.value)
        self.order(by, reverse=self._by == by and not self._reverse)

    def action_sort(self) -> None:
        """Sort by the next column that is shown; after the last one, as the daemon does."""
        titles = ["", *(str(key.value) for key in self.columns)]
        self.order(titles[(titles.index(self._by) + 1) % len(titles)] if self._by in titles else "", reverse=False)

    def action_reverse(self) -> None:
        self.order(self._by, reverse=not self._reverse)

    def order(self, by: str, *, reverse: bool) -> None:
        """Sort by a column, and show the first rows."""
        self._by, self._reverse = by, reverse
        self.move_cursor(row=0, animate=False)
        self.put()


class View(Screen[None]):
    """A screen that shows the answers to some requests."""

    app: TopApp

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def requests(self) -> Sequence[Json]:
        """What to ask now. Called in another thread."""
        raise NotImplementedError

    def show(self, *found: Json) -> None:
        """Show the answers. Raises ValueError if they cannot be read."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.set_interval(1.0, self.say_if_slow)
        self.app.ask_about(self)

    def on_screen_resume(self) -> None:
        if self.is_mounted:  # otherwise it has nothing yet to show an answer in
            self.app.ask_about(self)

    def take(self, found: Sequence[Json], trouble: str) -> None:
        """Show the answers; after an error, what was shown before stays."""
        if not trouble:
            try:
                with self.app.batch_update():
                    self.show(*found)
            except ValueError as error:
                trouble = str(error)
        self.say(f"NO ANSWER: {trouble}" if trouble else "")

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open a target or job."""
        if isinstance(event.data_table, Listing):
            self.app.push_screen(Detail(self.source, str(event.data_table.id), event.data_table.chosen))

    def say_if_slow(self) -> None:
        waited = self.app.waited_seconds
        if waited >= SLOW_SECONDS:
            self.say(f"tierd has not answered for {waited:.0f} s")

    def say(self, trouble: str = "") -> None:
        """Show what is wrong, or that the display is paused."""
        if self.app.frozen and self.source.time is None:
            trouble = trouble or "paused: p continues"
        shown = self.query_one("#trouble", Static)
        shown.display = bool(trouble)
        shown.update(Text(printable(trouble), "bold red"))


class Overview(View):
    """All targets and jobs."""

    AUTO_FOCUS = "#jobs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "table('targets')", "Targets"), Binding("j", "table('jobs')", "Jobs"),
        Binding("slash", "filter", "Filter", key_display="/"), Binding("escape", "no_filter", "Back", show=False)]

    def compose(self) -> ComposeResult:
        yield Static(id="trouble")
        yield Static(id="head")
        yield Input(placeholder="part of a name, user or role; Enter keeps it, Esc shows all", id="filter")
        with Vertical(id="tables"):
            yield Listing("targets")
            yield Listing("jobs")
        yield Footer(compact=True)

    def requests(self) -> Sequence[Json]:
        return self.source.requests

    def show(self, *found: Json) -> None:
        head, tables = self.source.shown(*found)
        self.query_one("#head", Static).update(Text("\n").join(head))
        for rows in tables:
            self.query_one(f"#{rows.what}", Listing).put(rows)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.height < BOTH_TABLES_HEIGHT, "low")

    def action_table(self, what: str) -> None:
        self.query_one(f"#{what}").focus()

    def on_descendant_focus(self) -> None:
        """Show the table with the focus, even on a low terminal."""
        if isinstance(self.focused, Listing):
            for listing in self.query(Listing):
                listing.set_class(listing is not self.focused, "other")

    def action_filter(self) -> None:
        typed = self.query_one("#filter", Input)
        typed.display = True
        typed.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        for listing in self.query(Listing):
            listing.words = event.value
            listing.put()

    def on_input_submitted(self) -> None:
        self.query("Listing").exclude(".other").first().focus()

    def action_no_filter(self) -> None:
        typed = self.query_one("#filter", Input)
        typed.value, typed.display = "", False
        self.on_input_submitted()


CURVES = ("read/s", bytes_text), ("write/s", bytes_text), ("ops/s", "{:.0f}".format), ("metadata/s", "{:.0f}".format)
"""Titles and units of the curves, in the order of :class:`RatesAnswer`."""
CURVE_SECONDS = 3600.0


class Detail(View):
    """One target or job: its rates over an hour, its cases, and its jobs or targets now."""

    BINDINGS: ClassVar[list[BindingType]] = [*STEPS, Binding("escape", "app.pop_screen", "Back")]

    def __init__(self, source: Source, what: str, name: str) -> None:
        super().__init__(source)
        self._what, self._of = what, name
        self._others = "jobs" if what == "targets" else "targets"

    def compose(self) -> ComposeResult:
        yield Static(id="trouble")
        yield Static(id="head")
        for number in range(len(CURVES)):
            yield Static(id=f"title{number}")
            yield Sparkline(id=f"curve{number}")
        yield Static(id="cases")
        if self.source.time is None:
            yield Listing(self._others)
        yield Footer(compact=True)

    def requests(self) -> Sequence[Json]:
        of = {self._what[:-1]: self._of}
        return ({"request": "rates", **of, "seconds": CURVE_SECONDS, "until": self.source.time or 0.0},
                {"request": "about", **of})

    def show(self, *found: Json) -> None:
        rates, about = RatesAnswer.from_json(found[0]), AboutAnswer.from_json(found[1])
        points, row = list(rates.points), about.job or about.target
        if self.source.time is None and row is not None:
            metadata = points[-1][4] if points else 0.0
            points.append((rates.until, row.read_bytes, row.write_bytes, row.operations, metadata))
        over = f"from {time_text(points[0][0])} to {time_text(points[-1][0])[11:]}" if points else "no record yet"
        name = f"{self._what[:-1]} {self._of}" + (f", user {about.users[self._of]}" if self._of in about.users else "")
        self.query_one("#head", Static).update(Text(printable(f"{name}: {over}"), "bold"))
        for number, (title, text_of) in enumerate(CURVES):
            values = [point[number + 1] for point in points]
            words, curve = self.query_one(f"#title{number}", Static), self.query_one(f"#curve{number}", Sparkline)
            words.display = curve.display = any(values)
            if any(values):
                words.update(Text(f"{title:10} {text_of(values[-1])}, at most {text_of(max(values))}"))
                curve.data = [0.0, *values]  # the curve begins at its least value
        self.query_one("#cases", Static).update(Text("\n").join(cases_of(about, self.source.time)))
        if self.source.time is None:
            self.query_one(Listing).put(rate_rows(self._others, about.beside, about.all_beside))


KEYS = """\
arrows, PgUp, End … move the cursor
Enter               open this target or job
Esc                 back; end the filter
/                   filter by name, user or role
s, r                sort by the next column; reverse
t, j                table of targets, of jobs
p                   pause the display; again: continue
Left, Right, <, >   --replay: one record, an hour
q, Ctrl-C           quit

A click on a title sorts by its column."""


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, "dismiss", "Back", show=False) for key in ("escape", "enter", "space", "question_mark", "f1")]

    def compose(self) -> ComposeResult:
        yield Static(Text(KEYS), id="keys")
        yield Footer(compact=True)


class TopApp(App[None]):
    """The whole of ``tierctl top``."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Listing { height: 1fr; border-top: solid ansi_blue; scrollbar-size-horizontal: 0; }
    Listing.other { border-top: solid ansi_bright_black; }
    .low Listing.other { display: none; }
    #head { height: auto; max-height: 10; }
    #trouble, #filter { display: none; height: auto; }
    #filter { border: none; }
    #keys { width: auto; max-width: 100%; padding: 0 1; border: solid ansi_blue; }
    Help { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("less_than_sign", "step(-3600)", "", show=False),
        Binding("greater_than_sign", "step(3600)", "", show=False),
        Binding("p", "freeze", "Pause"), Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("q,ctrl+c", "quit", "Quit", key_display="q", priority=False)]

    def __init__(self, ask: Ask, source: Source, seconds: float, clock: SystemClock | None = None) -> None:
        super().__init__()
        self.source, self.frozen = source, isinstance(source, Past)
        self._ask, self._seconds, self._clock = ask, max(LEAST_SECONDS, seconds), clock or SystemClock()
        self._view: View | None = None
        """What is asked about."""
        self._asked_at: float | None = None
        """When the request was sent whose answer is not on the screen: a slow terminal must not fall behind."""
        self._next_at = 0.0
        """When to ask again."""

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self.set_interval(LEAST_SECONDS / 4, self.ask_again)
        self.push_screen(Overview(self.source))

    def ask_about(self, view: View) -> None:
        """Ask for this view at once, and from now on."""
        self._view, self._next_at = view, 0.0
        self.ask_again()

    def ask_again(self) -> None:
        """Ask for what the view shows, unless an answer is awaited, it is too early, or the display is paused."""
        now = self._clock.monotonic()
        if self._view is not None and self._asked_at is None and now >= self._next_at and (
                not self.frozen or not self._next_at):
            self._asked_at, self._next_at = now, float("inf")
            # as a daemon: a request without an answer must not delay the end
            Thread(target=self._await, args=(self._view,), daemon=True).start()

    @property
    def waited_seconds(self) -> float:
        """Age of a request without an answer."""
        return 0.0 if self._asked_at is None else self._clock.monotonic() - self._asked_at

    def _await(self, view: View) -> None:
        found, trouble = list[Json](), ""
        try:
            found += [self._ask(request) for request in view.requests()]
        except (OSError, ValueError) as error:
            trouble = str(error)
        with suppress(RuntimeError):  # the application has ended
            self.call_later(self._show, view, found, trouble)

    def _show(self, view: View, found: Sequence[Json], trouble: str) -> None:
        if view.query("#head"):  # it is neither being composed nor removed
            view.take(found, trouble)
            if not self.frozen and isinstance(self.source, Past):
                self.source.step(1)
        self._asked_at = None
        if self._next_at:
            self._next_at = self._clock.monotonic() + self._seconds
        self.ask_again()

    def check_action(self, action: str, _: tuple[object, ...]) -> bool:
        return action != "step" or isinstance(self.source, Past)

    def action_step(self, seconds: int) -> None:
        """Go forward or back in a replay."""
        if isinstance(self.source, Past) and isinstance(self.screen, View):
            self.source.step(seconds)
            self.ask_about(self.screen)

    def action_freeze(self) -> None:
        """Show no newer answers until the key is pressed again. A replay starts paused."""
        self.frozen = not self.frozen
        if isinstance(self.screen, View):
            self.screen.say()

    def action_help(self) -> None:
        if not isinstance(self.screen, Help):
            self.push_screen(Help())
