"""Options of ``lfs setstripe`` and ``lfs migrate`` for a layout.

Within one command, a component inherits the count, stripe size and pool that it does not name from the component before
it. If a component names one of these, all later components must name it too. A component that would have to return to
the file system's default is refused, because ``lfs`` would silently inherit.

>>> from lustre.layout.model import EOF
>>> small_files = Layout((Component(0, 2 << 20, pool="flash"), Component(2 << 20, EOF, pool="hdd")))
>>> " ".join(setstripe_arguments(small_files))
'-E 2M -c 1 -p flash -E -1 -c 1 -p hdd'
"""

from __future__ import annotations

from collections.abc import Iterator

from lustre.layout.model import ALIGNMENT_BYTES, Component, Layout, mirrors
from lustre.layout.size import size_text

NO_POOL = "ignore"
"""Pool name that stops ``lfs`` from inheriting the pool of the component before."""

_PATTERNS = ({"raid0"}, {"mdt"}, {"raid0", "overstriped"})


def setstripe_arguments(layout: Layout) -> tuple[str, ...]:
    """Return the options that give a new file this layout. Raises ValueError if ``lfs`` cannot express it.

    The OST of the first stripe is named only for a component without objects. For a component with objects, Lustre may
    have chosen that OST, and naming it would bind every later file to it.

    >>> setstripe_arguments(Layout((Component(pool="flash", stripe_size=1 << 20),), composite=False))
    ('-c', '1', '-S', '1M', '-p', 'flash')
    >>> setstripe_arguments(Layout((Component(pool="hdd", stripe_count=2, ost_list=(4, 2)),), composite=False))
    ('-c', '2', '-p', 'hdd', '-o', '4,2')
    """
    if not layout.components:
        raise ValueError("a layout without components")
    if (foreign := layout.components[0].foreign) is not None:
        if len(layout.components) > 1:
            raise ValueError("lfs setstripe cannot mix a foreign component with others")
        value = foreign.value.decode(errors="surrogateescape")
        return f"--foreign={foreign.kind}", f"--flags={foreign.flags:#x}", f"--xattr={value}"
    groups = mirrors(layout)
    arguments: list[str] = []
    before: Component | None = None
    for group in groups:
        arguments += ["-N"] if len(groups) > 1 else []
        arguments += ["--flags=prefer"] if len(groups) > 1 and all("prefer" in c.flags for c in group) else []
        for component in _contiguous(group):
            if layout.composite:
                end = component.extent_end
                arguments += ["-E", "-1" if end is None else _aligned("component end", end)]
            arguments += _options(component, before)
            before = component
    return tuple(arguments)


def _contiguous(group: tuple[Component, ...]) -> Iterator[Component]:
    """Yield the components of a mirror. Raises ValueError for a gap, because ``lfs`` options name only extent ends."""
    end: int | None = 0
    for component in group:
        if component.extent_start != end:
            raise ValueError(f"component at {component.extent_start} does not begin where the one before ends ({end})")
        end = component.extent_end
        yield component


def _options(component: Component, before: Component | None) -> list[str]:
    kinds = set(component.pattern.split(",")) - {"released"}
    if kinds not in _PATTERNS:
        raise ValueError(f"lfs setstripe has no option for the pattern {component.pattern!r}")
    if component.on_mdt:
        if before is not None:
            raise ValueError("data on MDT is possible in the first component only")
        return ["-L", "mdt"]
    inherits = before is not None and not before.on_mdt
    options: list[str] = []
    if component.stripe_count:
        options += ["-C" if component.overstriped else "-c", str(component.stripe_count)]
    elif inherits and before is not None and before.stripe_count:
        raise ValueError(_again(component, "stripe count"))
    if component.stripe_size:
        options += ["-S", _aligned("stripe size", component.stripe_size)]
    elif inherits and before is not None and before.stripe_size:
        raise ValueError(_again(component, "stripe size"))
    if component.extension_size:
        options += ["-z", _aligned("extension size", component.extension_size)]
    if component.pool or (inherits and before is not None and before.pool):
        options += ["-p", component.pool or NO_POOL]
    if component.ost_list:
        options += ["-o", ",".join(map(str, component.ost_list))]
    elif component.stripe_offset >= 0 and not component.objects:
        options += ["-i", str(component.stripe_offset)]
    return options


def _again(component: Component, what: str) -> str:
    return f"component at {component.extent_start}: {what} cannot go back to the default; name it"


def _aligned(what: str, size_bytes: int) -> str:
    if size_bytes <= 0 or size_bytes % ALIGNMENT_BYTES:
        raise ValueError(f"{what} {size_bytes} is not a multiple of {size_text(ALIGNMENT_BYTES)}")
    return size_text(size_bytes)
