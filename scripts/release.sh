#!/bin/sh
# release.sh: makes and signs the files of a release in dist/, and its tag. See CONTRIBUTING.md. DIST_PYTHONS names further
# Pythons to build wheels for.
set -eu
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' lustre/__init__.py)
[ -z "$(git status --porcelain)" ] || { echo "the tree has changes: commit them first" >&2; exit 1; }
grep -q "^## $version" CHANGELOG.md || { echo "CHANGELOG.md has no section $version" >&2; exit 1; }
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then
    echo "the tag v$version exists: raise the version" >&2
    exit 1
fi
rm -rf dist
make dist packages DIST_PYTHONS="${DIST_PYTHONS:-}"
(cd dist && sha256sum -- * >SHA256SUMS && gpg --armor --detach-sign SHA256SUMS)
git tag --sign --message "lustre-tierd $version" "v$version"
echo "signed dist/SHA256SUMS and the tag v$version; to publish: git push origin v$version"
