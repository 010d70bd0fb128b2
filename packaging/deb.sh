#!/bin/sh
# deb.sh FOLDER: a Debian package in FOLDER. Run from the top of the source; needs dpkg-deb, gcc, python3-dev, and pip's packages.
set -eu
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
sh packaging/install.sh "$work"
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' packaging/debian/changelog)
mkdir -p "$work/DEBIAN" "$folder"
minor=$("${PYTHON:-/usr/bin/python3}" -c 'import sys; print(sys.version_info[1])')
sed -e "s/@PYTHON@/python3 (>= 3.$minor), python3 (<< 3.$((minor + 1)))/" \
    -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$(dpkg --print-architecture)/" \
    packaging/debian/control >"$work/DEBIAN/control"
cp packaging/debian/conffiles "$work/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 755 "packaging/debian/$script" "$work/DEBIAN/$script"
done
gzip -9n <packaging/debian/changelog >"$work/usr/share/doc/lustre-tierd/changelog.Debian.gz"
install -m 644 packaging/debian/copyright "$work/usr/share/doc/lustre-tierd/copyright"
dpkg-deb --root-owner-group -Zxz --build "$work" "$folder"
