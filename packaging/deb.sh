#!/bin/sh
# deb.sh FOLDER [PACKAGE...]: makes Debian packages in FOLDER, both if none is named. Run from the top of the source. Needs
# dpkg-deb, gcc, python3-dev, python3-venv and pip.
set -eu
folder=$1
shift
[ $# -gt 0 ] || set -- lustre-exporter lustre-tierd
mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' packaging/debian/changelog)
minor=$("${PYTHON:-/usr/bin/python3}" -c 'import sys; print(sys.version_info[1])')
for package in "$@"; do
    work=$scratch/$package
    from=packaging/debian/$package
    mkdir -p "$work/DEBIAN"
    ZSH_FOLDER=usr/share/zsh/vendor-completions sh packaging/install.sh "$package" "$work"
    gzip -9n "$work"/usr/share/man/man*/*
    sed -e "s/@PYTHON@/python3 (>= 3.$minor), python3 (<< 3.$((minor + 1)))/" \
        -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$(dpkg --print-architecture)/" "$from/control" >"$work/DEBIAN/control"
    cp "$from/conffiles" "$work/DEBIAN/conffiles"
    for script in postinst prerm postrm; do
        install -m 755 "$from/$script" "$work/DEBIAN/$script"
    done
    [ ! -e "$from/templates" ] || cp "$from/templates" "$work/DEBIAN/templates"
    gzip -9n <packaging/debian/changelog >"$work/usr/share/doc/$package/changelog.Debian.gz"
    install -m 644 packaging/debian/copyright "$work/usr/share/doc/$package/copyright"
    dpkg-deb --root-owner-group -Zxz --build "$work" "$folder"
done
