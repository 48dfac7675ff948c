#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real systemd, as PID 1 of a container over a throw-away copy-on-write view of this machine's files:
#
#   systemd-container.sh [-t SECONDS] [-r ROOT] [-i TREE]... COMMAND [ARG...]
#   systemd-container.sh [-r ROOT] [-i TREE]... --serve
#
# -r     another root file system instead of this machine's
# -i     lay this folder's files over the root before boot, as `make install DESTDIR=` leaves them, and
#        make the users that they bring
# -t     end the command after this long (300)
# --serve  print "ready PID ROOT" (the container's PID 1, and its root as seen from here), and keep it
#        until stdin ends
#
# What is installed here is there too; nothing written inside lasts. Boots to basic.target: services of
# this machine stay down until they are started. The container has its own processes, journal, and
# network (a loopback alone), every capability, and this machine's hugepages and /dev/net/tun. Needs
# root, and the packages systemd and systemd-container. Not seen inside: what is mounted below /, so
# /run and /dev/shm too; /tmp is another one. Where the machine has cgroups of version 1 their
# controllers are read-only inside: CPUQuota=, AllowedCPUs= and MemoryMax= have no effect there.
set -euo pipefail

me=${0##*/}
say() { echo "$me: $*" >&2; }

limit=300
serve=no
base=/
trees=()
while [ $# -gt 0 ]; do
	case $1 in
	-t) limit=$2; shift 2 ;;
	-r) base=$(realpath "$2"); shift 2 ;;
	-i) trees+=("$2"); shift 2 ;;
	--serve) serve=yes; shift ;;
	-*) say "no such option: $1"; exit 2 ;;
	*) break ;;
	esac
done
if [ "$serve" = no ] && [ $# -eq 0 ]; then
	say 'a command is missing; the head of this script tells its usage'
	exit 2
fi
[ "$(id -u)" -eq 0 ] || { say 'needs root'; exit 1; }
command -v systemd-nspawn > /dev/null || { say 'needs the package systemd-container'; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/systemd-container.XXXXXX")
nspawn='' pid1='' log=$work/rw/console.log
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	# Nothing inside is worth an orderly stop, which could take minutes.
	if [ -n "$pid1" ]; then kill -KILL "$pid1" 2> /dev/null || :; fi
	if [ -n "$nspawn" ]; then
		if [ -z "$pid1" ]; then kill -TERM "$nspawn" 2> /dev/null || :; fi
		wait "$nspawn" 2> /dev/null || :
	fi
	umount -l "$work/rw/root" 2> /dev/null || :
	umount -l "$work/rw" 2> /dev/null || :
	rmdir "$work/rw" "$work" 2> /dev/null || :
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

root=$work/rw/root
mkdir "$work/rw"
mount -t tmpfs -o mode=755 tmpfs "$work/rw"
mkdir "$work/rw/upper" "$work/rw/work" "$root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/rw/upper,workdir=$work/rw/work" "$root"

for tree in "${trees[@]}"; do
	# Folders of the tree that are links here (/lib) are followed.
	tar -C "$tree" -cf - . | tar -C "$root" -xf - --keep-directory-symlink --no-same-owner \
		--no-overwrite-dir
done
if [ ${#trees[@]} -gt 0 ]; then
	# What packages do when they are installed.
	systemd-sysusers --root="$root" 2> /dev/null
	journalctl --root="$root" --update-catalog
	ldconfig -r "$root"
fi

binds=()
mountpoint -q /dev/hugepages && binds+=(--bind=/dev/hugepages)
[ -e /dev/net/tun ] && binds+=(--bind=/dev/net/tun)
# Its own files would tell it to load modules into this machine's kernel, and to do the night's jobs.
masks=(systemd.mask=timers.target systemd.mask=systemd-modules-load.service)
# perf_event_open is what the agent reads context switches by; nspawn's own filter refuses it.
systemd-nspawn --quiet --register=no --keep-unit --boot --directory="$root" --private-network \
	--machine="pmdpulse-$$" --capability=all --system-call-filter=perf_event_open \
	"${binds[@]}" --console=pipe systemd.unit=basic.target "${masks[@]}" < /dev/null > "$log" 2>&1 &
nspawn=$!

inside() { nsenter -t "$pid1" -a "$@"; }

for _ in $(seq 300); do
	pid1=$(pgrep -P "$nspawn" -x systemd || :)
	if [ -n "$pid1" ] && inside systemctl is-active --quiet basic.target 2> /dev/null; then
		break
	fi
	if ! kill -0 "$nspawn" 2> /dev/null; then
		pid1=
		break
	fi
	sleep 0.1
done
if [ -z "$pid1" ] || ! inside systemctl is-active --quiet basic.target; then
	say 'the container did not boot:'
	cat "$log" >&2
	exit 1
fi
# nspawn mounts a boot id of its own over the kernel's; sandboxed services see through to that one, and
# segments that carry it would be of another boot for everybody else.
inside umount /proc/sys/kernel/random/boot_id 2> /dev/null || :
# nspawn's /sys lacks /sys/module, which DPDK looks at.
inside sh -c 'mount -o remount,rw /sys && mkdir -p /sys/module /run/sysfs &&
	mount -t sysfs sysfs /run/sysfs && mount --bind /run/sysfs/module /sys/module
	umount /run/sysfs; rmdir /run/sysfs' || :

if [ "$serve" = yes ]; then
	echo "ready $pid1 $root"
	cat > /dev/null
	exit 0
fi
rc=0
inside timeout "$limit" "$@" || rc=$?
exit "$rc"
