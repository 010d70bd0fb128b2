#!/bin/sh
# rpm.sh FOLDER: makes the RPM packages in FOLDER. Run from the top of the source. Needs rpmbuild (packages rpm or rpm-build),
# gcc, pip and Python's headers. PYTHON is the name of the distribution's Python to build with (default: python3.11).
set -eu
folder=$1
command -v rpmbuild >/dev/null || { echo "rpmbuild is missing: install rpm (Debian) or rpm-build (Enterprise Linux)" >&2; exit 1; }
mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python=${PYTHON:-python3.11}
# Debian has neither the macros of systemd nor packages that satisfy BuildRequires. The scripts of the packages are then empty.
if [ ! -e /usr/lib/rpm/macros.d/macros.systemd ]; then
    set -- --nodeps --define "__brp_compress %{nil}" --define "_unitdir /usr/lib/systemd/system" --define "systemd_requires %{nil}"
    for macro in systemd_post systemd_preun systemd_postun_with_restart sysusers_create_compat; do
        set -- "$@" --define "$macro() %{nil}"
    done
else
    set --
fi
rpmbuild -bb --quiet "$@" --define "_rpmdir $scratch" --define "_topdir $scratch/build" --define "_sourcedir $PWD" \
    --define "python_for_build $python" --build-in-place packaging/lustre-tierd.spec
find "$scratch" -name "*.rpm" -exec cp {} "$folder" \;
