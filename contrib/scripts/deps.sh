#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh GROUP...: sees to it that Debian's packages for these groups are here. Root gets
# them installed, others are told the command. DEPS=no skips all of it.
#
# Plain sh, and nothing but what a fresh Debian has: it runs before there is a compiler.
set -eu

packages() {
	case $1 in
	build) echo autoconf gcc libc6-dev pkg-config libdpdk-dev libpcap-dev libyajl-dev libsystemd-dev \
		libdw-dev libelf-dev collectd-dev libcurl4-openssl-dev ;;
	run) echo collectd-core libmicrohttpd12 libprotobuf-c1 procps python3 ;;
	test) echo libcmocka-dev python3 python3-pytest python3-jsonschema python3-scapy \
		collectd-core libmicrohttpd12 libprotobuf-c1 librdkafka1 ethtool g++ gdb iproute2 iperf3 \
		iputils-ping mandoc openssl openvswitch-common procps prometheus prometheus-alertmanager python3-yaml scdoc \
		stress-ng systemd systemd-container ;;
	bench) echo iproute2 procps stress-ng python3 ;;
	lint) echo clang clang-format clang-tidy cppcheck shellcheck systemd ;;
	pictures) echo chromium pngquant ;;
	fuzz) echo clang libclang-rt-14-dev llvm ;;
	deb) echo debhelper debootstrap dpkg-dev elfutils fakeroot libcurl4-openssl-dev lintian rsync \
		scdoc systemd systemd-container xz-utils ;;
	*) echo "deps.sh: no such group: $1" >&2; exit 2 ;;
	esac
}

if [ "${DEPS:-yes}" = no ] || ! command -v dpkg-query > /dev/null; then
	exit 0
fi

wanted=
for group in "$@"; do
	wanted="$wanted $(packages "$group")"
done

# One query for all; a package that dpkg never heard of only makes it return non-zero.
# shellcheck disable=SC2086 # a list of words
installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' $wanted 2> /dev/null || :)"
missing=
for package in $wanted; do
	case "$installed $missing " in
	*" installed:$package "* | *" $package "*) ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	sudo=
	if command -v sudo > /dev/null; then
		sudo="sudo "
		echo "Packages are missing. Install them with:" >&2
	else
		echo "Packages are missing. Let root install them with:" >&2
	fi
	echo "    ${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends$missing" >&2
	exit 1
fi

echo "Installing with apt-get:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends $missing; } \
	> "$log" 2>&1 < /dev/null; then
	cat "$log" >&2
	echo "deps.sh: apt-get failed" >&2
	exit 1
fi
