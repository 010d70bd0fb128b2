"""What setup.cfg cannot declare: the packages below ``lustre_tierd``, and the optional C modules.

Names of the rooms are common: indexes have other distributions named ``lustre`` and ``httpserver``. So all of them are
installed below ``lustre_tierd``. Without a compiler the C modules are omitted (docs/decisions/012).
"""

from setuptools import Extension, find_packages, setup

ROOMS = ("lustre", "httpserver", "exporter", "tierd")
HOME = "lustre_tierd"


def extension(module: str, *sources: str) -> Extension:
    """A module that may be missing."""
    return Extension(f"{HOME}.{module}", [f"{module.replace('.', '/')}.c", *sources], optional=True)


setup(
    packages=[HOME, f"{HOME}.runbooks", *(f"{HOME}.{name}" for name in find_packages(
        include=[pattern for room in ROOMS for pattern in (room, f"{room}.*")], exclude=["tierd.simulation"]))],
    package_dir={HOME: f"packaging/{HOME}", f"{HOME}.runbooks": "docs/runbooks",
                 **{f"{HOME}.{room}": room for room in ROOMS}},
    package_data={"": ["py.typed"], f"{HOME}.tierd.daemon": ["assets/*", "pages/*.html"], f"{HOME}.runbooks": ["*.md"]},
    ext_modules=[
        extension("lustre._files", "lustre/formats/marks.c"),
        extension("lustre.formats._texts", "lustre/formats/marks.c"),
        extension("exporter.jobs._lines"),
    ],
)
