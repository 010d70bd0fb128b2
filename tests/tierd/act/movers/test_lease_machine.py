"""Any interleaving of applications, faults and a killed mover: contents and metadata are what was last written."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lustre.calls import Hsm, HsmFlags
from lustre.errors import of_errno
from tests.tierd.act.movers.minicalls import Killed, MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, PAGE, PFL, MiniLustre, Node
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.outcome import Move, Outcome, Result
from tierd.act.movers.room import Destination

NAMES = ("/a", "/b", "/d/c")
LAYOUTS = {"flash": FLASH, "hdd": HDD, "pfl": PFL}
FAULTS = (errno.EIO, errno.ENOSPC, errno.EBUSY, errno.ESTALE, errno.EDQUOT, errno.EINTR, errno.EROFS, errno.EACCES)
NOBODY_ELSE = 80
"""More calls than a move makes: something scheduled later than that does not happen."""

names = st.sampled_from(NAMES)
layouts = st.sampled_from(sorted(LAYOUTS))
contents = st.binary(min_size=1, max_size=40) | st.builds(lambda c, n: bytes((c,)) * n, st.integers(1, 255),
                                                          st.integers(PAGE, 7 * PAGE))
offsets = st.integers(0, 12 * PAGE)
steps = st.integers(1, NOBODY_ELSE)
acts = st.one_of(
    st.tuples(st.just("write"), names, contents, offsets),
    st.tuples(st.just("truncate"), names, offsets),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("link"), names, names),
    st.tuples(st.just("unlink"), names),
    st.tuples(st.just("chmod"), names, st.sampled_from((0o600, 0o640, 0o666))),
    st.tuples(st.just("chown"), names, st.sampled_from((1001, 1002))),
    st.tuples(st.just("setxattr"), names, contents),
    st.tuples(st.just("touch"), names),
    st.tuples(st.just("open"), names),
    st.tuples(st.just("close")),
    st.tuples(st.just("pin"), names),
    st.tuples(st.just("chproject"), names, st.sampled_from((7, 8))),
)


@dataclass
class Expected:
    """What an application would swear the file is."""

    data: bytes = b""
    mode: int = 0o644
    uid: int = 1001
    xattrs: dict[str, bytes] = field(default_factory=dict)
    mtime_ns: int = 0


class Mover(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lustre = MiniLustre()
        self.expected: dict[int, Expected] = {}
        self.writers: list[Node] = []
        self.moving = False
        self.projects_raced: set[int] = set()
        """Files given to another project during a move: in its last instant Lustre does not notice (decision 6)."""

    # -- applications -----------------------------------------------------------------------------------------------

    @initialize(data=contents, layout=layouts, mdt=st.integers(0, 1))
    def begin(self, data: bytes, layout: str, mdt: int) -> None:
        self.create(NAMES[0], data, layout, mdt)

    @rule(name=names, data=contents, layout=layouts, mdt=st.integers(0, 1))
    def create(self, name: str, data: bytes, layout: str, mdt: int) -> None:
        if name not in self.lustre.names:
            node = self.lustre.create(name, data, LAYOUTS[layout], mdt)
            self.expected[id(node)] = Expected(data, mtime_ns=node.mtime_ns)

    @rule(act=acts)
    def application(self, act: tuple[object, ...]) -> None:
        """One thing an application does; nothing where it cannot."""
        kind, *rest = act
        if rest and rest[0] not in self.lustre.names:
            return
        getattr(self, f"do_{kind}")(*rest)

    def do_write(self, name: str, data: bytes, offset: int) -> None:
        self.lustre.write(name, data, offset)
        known = self.known(name)
        padded = known.data.ljust(offset, b"\0")
        known.data = padded[:offset] + data + padded[offset + len(data) :]
        known.mtime_ns = self.lustre.clock_ns

    def do_truncate(self, name: str, size: int) -> None:
        self.lustre.truncate_name(name, size)
        known = self.known(name)
        known.data = known.data[:size].ljust(size, b"\0")
        known.mtime_ns = self.lustre.clock_ns

    def do_rename(self, name: str, new: str) -> None:
        self.lustre.rename(name, new)

    def do_link(self, name: str, new: str) -> None:
        if new not in self.lustre.names:
            self.lustre.link(name, new)

    def do_unlink(self, name: str) -> None:
        self.lustre.unlink(name)

    def do_chmod(self, name: str, mode: int) -> None:
        node = self.lustre.names[name]
        node.mode = node.mode & ~0o777 | mode
        self.known(name).mode = mode

    def do_chown(self, name: str, uid: int) -> None:
        node = self.lustre.names[name]
        node.uid = self.known(name).uid = uid
        node.store.owner = (node.uid, node.gid, node.project)

    def do_chproject(self, name: str, project: int) -> None:
        node = self.lustre.names[name]
        node.project = project
        node.store.owner = (node.uid, node.gid, node.project)
        if self.moving:
            self.projects_raced.add(id(node))

    def do_setxattr(self, name: str, value: bytes) -> None:
        self.lustre.names[name].xattrs["user.note"] = value
        self.known(name).xattrs["user.note"] = value

    def do_touch(self, name: str) -> None:
        self.lustre.touch(name)
        self.known(name).mtime_ns = self.lustre.clock_ns

    def do_open(self, name: str) -> None:
        self.writers.append(self.lustre.open_writer(name))

    def do_close(self) -> None:
        if self.writers:
            self.lustre.close_writer(self.writers.pop())

    def do_pin(self, name: str) -> None:
        node = self.lustre.names[name]
        node.pin = b"" if node.pin else b"- pool: hdd\n"

    @rule(name=names, flags=st.sampled_from((HsmFlags.NONE, HsmFlags.EXISTS | HsmFlags.ARCHIVED, HsmFlags.DIRTY)))
    def archive(self, name: str, flags: HsmFlags) -> None:
        if name in self.lustre.names:
            self.lustre.names[name].hsm = Hsm(flags)

    @rule(room_bytes=st.sampled_from((1 << 30, 4 * PAGE)))
    def fill(self, room_bytes: int) -> None:
        self.lustre.room_bytes = room_bytes

    @rule()
    def half_a_minute(self) -> None:
        self.lustre.settle()

    # -- the mover --------------------------------------------------------------------------------------------------

    @rule(name=names, layout=layouts, schedule=st.lists(st.tuples(steps, acts), max_size=3),
          fault=st.none() | st.tuples(steps, st.sampled_from(FAULTS)), killed_at=st.none() | steps,
          elsewhere=st.none() | st.integers(0, 1), short=st.booleans(), lose_reply=st.booleans())
    def move(self, name: str, layout: str, schedule: list[tuple[int, tuple[object, ...]]],
             fault: tuple[int, int] | None, killed_at: int | None, elsewhere: int | None, short: bool,
             lose_reply: bool) -> None:
        calls = MiniCalls(self.lustre)
        calls.volatile_mdt, calls.short_transfers, calls.lose_reply = elsewhere, short, lose_reply
        disturbed = False

        def before(call: str, number: int) -> None:
            nonlocal disturbed
            if number == killed_at:
                raise Killed
            for step, act in schedule:
                if step == number:
                    disturbed = True
                    self.application(act)
            if fault is not None and fault[0] == number:
                disturbed = True
                raise of_errno(fault[1], call)

        calls.before = before
        node = self.lustre.names.get(name)
        destination = Destination(lambda: self.lustre.pool_members, self.lustre.space, self.lustre.quota)
        self.moving = True
        try:
            (outcome,) = LeaseMover(calls, destination).move((Move(name, LAYOUTS[layout]),))
            self.judge(outcome, node, layout, disturbed)
            if not disturbed and node is not None and elsewhere in {None, node.mdt} and self.movable(node):
                assert outcome.result in {Result.DONE, Result.ALREADY}, outcome
        except Killed:
            pass
        finally:
            self.moving = False
            if calls.dead:
                self.lustre.process_died()
        assert not self.lustre.descriptors, "it left files open"

    def movable(self, node: Node) -> bool:
        dirty = HsmFlags.DIRTY in node.hsm.flags
        return not (node.pin or dirty or node.writers) and self.lustre.room_bytes > 1 << 20

    def judge(self, outcome: Outcome, node: Node | None, layout: str, disturbed: bool) -> None:
        if not disturbed:
            assert outcome.result is not Result.DOUBTFUL, outcome
        if outcome.result in {Result.DONE, Result.ALREADY} and not disturbed:
            assert node is not None
            assert [c.pool for c in node.store.layout.components] == [c.pool for c in LAYOUTS[layout].components]

    # -- what must always hold --------------------------------------------------------------------------------------

    @invariant()
    def every_file_is_what_was_last_written(self) -> None:
        for name, node in self.lustre.names.items():
            known = self.known(name)
            assert self.lustre.contents(name) == known.data
            assert (node.mode & 0o777, node.uid, node.xattrs) == (known.mode, known.uid, known.xattrs)
            assert max(node.mtime_ns, node.store.mtime_ns) == known.mtime_ns

    @invariant()
    def objects_belong_to_the_owner_of_the_file(self) -> None:
        for node in self.lustre.names.values():
            known = 2 if id(node) in self.projects_raced else 3
            assert node.store.owner[:known] == (node.uid, node.gid, node.project)[:known]

    @invariant()
    def nothing_leaks(self) -> None:
        self.lustre.settle()
        named = {id(node.store) for node in self.lustre.names.values()}
        assert {id(store) for store in self.lustre.live_stores()} == named

    def known(self, name: str) -> Expected:
        return self.expected[id(self.lustre.names[name])]


TestMover = Mover.TestCase
TestMover.settings = settings(max_examples=150, stateful_step_count=25, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow])
