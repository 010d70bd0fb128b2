"""Both engines, in any interleaving with applications, faults, rivals, kills: every file is what was last written."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lustre.errors import of_errno
from lustre.filesystem import Hsm, HsmFlags
from lustre.layout.model import Component, Layout
from lustre.layout.setstripe import setstripe_arguments
from tests.tierd.act.movers.fakelfs import MOUNT, FakeLfs
from tests.tierd.act.movers.minicalls import Killed, MiniCalls
from tests.tierd.act.movers.minilustre import FLASH, HDD, PAGE, MiniClock, MiniLustre, Node
from tierd.act.movers.checks import layout_objects
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.lfs import FinishedCommand, LfsMover
from tierd.act.movers.moves import Move, MoveOutcome, Mover, MoveResult
from tierd.act.movers.space_and_quota import Destination

NAMES = ("/a", "/b", "/d/c")
PFL = Layout((Component(0, 16 * PAGE, pool="flash"), Component(16 * PAGE, None, pool="hdd")))
LAYOUTS = {"flash": FLASH, "hdd": HDD, "pfl": PFL}
FAULTS = (errno.EIO, errno.ENOSPC, errno.EBUSY, errno.ESTALE, errno.EDQUOT, errno.EINTR, errno.EROFS, errno.EACCES)
LAST_STEP = 60
"""About as many calls as a move makes: something scheduled later than its end does not happen."""
names = st.sampled_from(NAMES)
layouts = st.sampled_from(sorted(LAYOUTS))
contents = st.builds(lambda c, n: bytes((c,)) * n, st.integers(1, 255), st.sampled_from((1, 40, PAGE, 5 * PAGE + 1)))
offsets = st.sampled_from((0, 1, PAGE, 2 * PAGE + 7, 15 * PAGE, 20 * PAGE))
steps = st.integers(1, LAST_STEP)
writes = st.tuples(st.just("write"), names, contents, offsets)
truncates = st.tuples(st.just("truncate"), names, offsets)
acts = writes | truncates | st.one_of(
    writes,
    truncates,
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("link"), names, names),
    st.tuples(st.just("unlink"), names),
    st.tuples(st.just("chmod"), names, st.sampled_from((0o600, 0o640, 0o666))),
    st.tuples(st.just("chown"), names, st.sampled_from((1001, 1002))),
    st.tuples(st.just("setxattr"), names, contents),
    st.tuples(st.just("removexattr"), names),
    st.tuples(st.just("touch"), names),
    st.tuples(st.just("open"), names),
    st.tuples(st.just("close")),
    st.tuples(st.just("pin"), names),
    st.tuples(st.just("chproject"), names, st.sampled_from((7, 8))),
    st.tuples(st.just("rival"), names, layouts),
)


@dataclass
class Expected:
    """What an application would swear the file is."""

    data: bytes = b""
    mode: int = 0o644
    uid: int = 1001
    xattrs: dict[str, bytes] = field(default_factory=dict)
    mtime_ns: int = 0


@dataclass
class Trouble:
    """What happens during one move."""

    schedule: list[tuple[int, tuple[object, ...]]]
    fault: tuple[int, int] | None
    killed_at: int | None
    both_die: bool
    """With lfs: tierd dies too when its lfs does."""
    steps: int = 0
    came: bool = False


class Movers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lustre = MiniLustre()
        self.lustre.directory_project = 7
        self.expected: dict[int, Expected] = {}
        self.writers: list[Node] = []
        self.moving = ""
        self.projects_raced: set[int] = set()
        """Files given to another project during a move: in its last instant Lustre does not notice (decision 6)."""
        self.times_raced: set[int] = set()
        """Files whose times were set while ``lfs`` moved them: ``lfs`` restores the earlier times (decision 6)."""

    # -- applications -----------------------------------------------------------------------------------------------

    @initialize(data=contents, layout=layouts, mdt=st.integers(0, 1), project=st.sampled_from((0, 7)))
    def begin(self, data: bytes, layout: str, mdt: int, project: int) -> None:
        self.lustre.directory_project = project  # lfs opens files of a project by name, the others by FID
        for name in NAMES:
            self.create(name, data, layout, mdt)

    @rule(name=names, data=contents, layout=layouts, mdt=st.integers(0, 1))
    def create(self, name: str, data: bytes, layout: str, mdt: int) -> None:
        if name not in self.lustre.names:
            node = self.lustre.create(name, data, LAYOUTS[layout], mdt)
            node.project = node.shown_project = self.lustre.directory_project
            node.store.owner = (node.uid, node.gid, node.project)
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
        # by name: who has it by then gets objects of the directory's project
        if self.moving == "lfs" and self.lustre.directory_project:
            self.projects_raced.add(id(self.lustre.names[name]))
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

    def do_removexattr(self, name: str) -> None:
        self.lustre.names[name].xattrs.clear()
        self.known(name).xattrs.clear()

    def do_touch(self, name: str) -> None:
        self.lustre.touch(name)
        self.times_raced.discard(id(self.lustre.names[name]))
        if self.moving == "lfs":
            self.times_raced.add(id(self.lustre.names[name]))
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

    trouble = st.builds(Trouble, st.lists(st.tuples(steps, acts), min_size=1, max_size=3),
                        st.none() | st.none() | st.tuples(steps, st.sampled_from(FAULTS)),
                        st.none() | st.none() | steps, st.booleans()) | st.builds(
                            Trouble, st.just([]), st.none(), st.none(), st.just(False))  # fmt: skip

    @rule(name=names, layout=layouts, trouble=trouble, elsewhere=st.none() | st.integers(0, 1), short=st.booleans(),
          lose_reply=st.booleans())
    def move_under_a_lease(self, name: str, layout: str, trouble: Trouble, elsewhere: int | None, short: bool,
                           lose_reply: bool) -> None:
        calls = MiniCalls(self.lustre)
        calls.volatile_mdt, calls.short_transfers, calls.lose_reply = elsewhere, short, lose_reply
        node = self.lustre.names.get(name)
        engine = LeaseMover(calls, self.destination(), MiniClock(self.lustre))
        sure = node is not None and elsewhere in {None, node.mdt}
        self.move("lease", engine, [name], layout, calls, None, trouble, sure)

    @rule(chosen=st.lists(names, min_size=1, max_size=3, unique=True), layout=layouts, trouble=trouble,
          lose_reply=st.booleans(), chatter=st.sampled_from(("", "lfs migrate: cannot get UNLOCK lease, ext 8\n")))
    def move_by_lfs(self, chosen: list[str], layout: str, trouble: Trouble, lose_reply: bool, chatter: str) -> None:
        calls, lfs = MiniCalls(self.lustre), FakeLfs(self.lustre, LAYOUTS.values())
        lfs.lose_reply, lfs.chatter = lose_reply, chatter

        def run(command: Sequence[str]) -> FinishedCommand:
            finished = lfs(command)
            if finished.code == -9 and trouble.both_die:
                calls.dead = True
            return finished

        engine = LfsMover(calls, self.destination(), MOUNT.__add__, run, clock=MiniClock(self.lustre))
        sure = all(n in self.lustre.names and self.lustre.names[n].project == self.lustre.directory_project
                   and sum(map(len, layout_objects(self.lustre.names[n].store.layout))) <= 1 for n in chosen)
        self.lustre.clock_ns += 60_000_000_000  # what was modified a moment ago is left alone
        self.move("lfs", engine, chosen, layout, calls, lfs, trouble, sure)

    def move(self, kind: str, engine: Mover, chosen: list[str], layout: str, calls: MiniCalls, lfs: FakeLfs | None,
             trouble: Trouble, sure: bool) -> None:
        """One call of an engine, with what happens meanwhile."""
        calls.before = lambda call, _: self.step(call, trouble)
        if lfs is not None:
            lfs.before = calls.before
        nodes = {name: self.lustre.names.get(name) for name in chosen}
        self.moving = kind
        try:
            for outcome in engine.move([Move(name, LAYOUTS[layout]) for name in chosen]):
                node = nodes[outcome.move.path]
                self.judge(outcome, node, layout, trouble)
                if sure and not trouble.came and node is not None and self.movable(node):
                    assert outcome.result in {MoveResult.DONE, MoveResult.ALREADY}, outcome
        except Killed:
            pass
        finally:
            self.moving = ""
            if calls.dead:
                self.lustre.process_died()
        assert not self.lustre.descriptors, "it left files open"

    def step(self, call: str, trouble: Trouble) -> None:
        """Before each call of tierd or of its lfs."""
        trouble.steps += 1
        number = trouble.steps
        if number == trouble.killed_at:
            trouble.came = True
            raise Killed
        for step, act in trouble.schedule:
            if step == number:
                trouble.came = True
                self.application(act)
        if trouble.fault is not None and trouble.fault[0] == number:
            trouble.came = True
            raise of_errno(trouble.fault[1], call)

    def do_rival(self, name: str, layout: str) -> None:
        """Somebody else moves the file with lfs, at once; whose project the objects then count for is not our doing."""
        self.projects_raced.add(id(self.lustre.names[name]))
        FakeLfs(self.lustre, LAYOUTS.values())(("lfs", "migrate", "--non-block", *setstripe_arguments(LAYOUTS[layout]),
                                               MOUNT + name))

    def destination(self) -> Destination:
        return Destination(lambda: self.lustre.pool_members, self.lustre.space, self.lustre.quota)

    def movable(self, node: Node) -> bool:
        dirty = HsmFlags.DIRTY in node.hsm.flags
        empty = HsmFlags.ARCHIVED in node.hsm.flags and not node.store.data
        return not (node.pin or dirty or empty or node.writers) and self.lustre.room_bytes > 1 << 20

    def judge(self, outcome: MoveOutcome, node: Node | None, layout: str, trouble: Trouble) -> None:
        """Actions of applications make no outcome doubtful, except a change of the project in the last instant."""
        disturbed = trouble.came
        projects = any(act[0] in {"chproject", "rival"} for _, act in trouble.schedule)
        if not disturbed or not (trouble.fault or trouble.killed_at or projects):
            assert outcome.result is not MoveResult.DOUBTFUL, outcome
        if outcome.result in {MoveResult.DONE, MoveResult.ALREADY} and not disturbed:
            assert [c.pool for c in node.store.layout.components] == [c.pool for c in LAYOUTS[layout].components]

    # -- what must always hold --------------------------------------------------------------------------------------

    @invariant()
    def every_file_is_what_was_last_written(self) -> None:
        for name, node in self.lustre.names.items():
            known = self.known(name)
            assert self.lustre.contents(name) == known.data
            assert (node.mode & 0o777, node.uid, node.xattrs) == (known.mode, known.uid, known.xattrs)
            if id(node) not in self.times_raced:
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


TestMovers = Movers.TestCase
TestMovers.settings = settings(max_examples=250, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])
