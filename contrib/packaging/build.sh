#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER: builds the Debian packages of this tree into FOLDER and has lintian look at them.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
version=$(sed -n 's/^AC_INIT(\[[^]]*\], \[\([^]]*\)\])/\1/p' "$top/configure.ac")
packaged=$(dpkg-parsechangelog -l "$top/contrib/packaging/debian/changelog" -S Version)
if [ "$version" != "$packaged" ]; then
	echo "build.sh: contrib/packaging/debian/changelog begins with version $packaged," \
		"configure.ac says $version: add an entry" >&2
	exit 1
fi
source=$out/pmdpulse-$version
mkdir -p "$source"
find "$out" -maxdepth 1 -type f -delete
# By content, with new times: make compiles what differs from the last time, and only that.
rsync -rlpc --delete --exclude='/build*' --exclude=/.git --exclude=__pycache__ \
	--exclude=.pytest_cache "$top/" "$source/"
cp -R "$source/contrib/packaging/debian" "$source/debian"
cd "$source"
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -S Timestamp)
export SOURCE_DATE_EPOCH
dpkg-buildpackage --build=binary --no-sign --no-pre-clean --jobs="$(nproc)"
cd "$out"
echo "lintian:"
lintian --allow-root --fail-on error --info --tag-display-limit 0 ./*.changes
ls -1 "$out"/*.deb
