#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mini-symbols.sh STRIPPED UNSTRIPPED: gives a stripped program its function names back, in a
# compressed .gnu_debugdata section (a few per cent of its size) that elfutils, gdb and perf read.
set -eu

stripped=$1
full=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Those in the dynamic table are there anyway.
nm -D --format=posix --defined-only "$stripped" | cut -d' ' -f1 | sort -u > "$tmp/dynamic"
nm --format=posix --defined-only "$full" | sed -n 's/ [Tt] .*//p' | sort -u > "$tmp/functions"
comm -13 "$tmp/dynamic" "$tmp/functions" > "$tmp/keep"
[ -s "$tmp/keep" ] || { echo "mini-symbols.sh: $full: no function names" >&2; exit 1; }
objcopy -S --remove-section .comment --keep-symbols="$tmp/keep" "$full" "$tmp/mini"
xz -9 "$tmp/mini"
objcopy --add-section .gnu_debugdata="$tmp/mini.xz" "$stripped"
