#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-units.sh: do the systemd units parse, and is no more open than each may have? The limits are
# tenths of `systemd-analyze security`: 0 is shut, 100 wide open.
set -eu
cd "$(dirname "$0")/../systemd"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "check-units.sh: $*" >&2
	failed=1
}

# The programs need not be installed: another one stands in for them, with their arguments.
for unit in *.service; do
	sed 's|^\(ExecStart=\)/usr/sbin/pmdpulse-[a-z]*|\1/bin/true|' "$unit" > "$work/$unit"
done
cp -r collectd.service.d "$work/"
cp "$work/pmdpulse-switch@.service" "$work/pmdpulse-switch@a-b.service"
# Where collectd is not installed, its drop-in is tried on a unit that does nothing.
if [ ! -e /lib/systemd/system/collectd.service ]; then
	printf '[Service]\nExecStart=/bin/true\n' > "$work/collectd.service"
fi

for unit in pmdpulse-switch pmdpulse-switch@a-b pmdpulse-agent pmdpulse-ves collectd; do
	# It returns 0 for a key that it does not know, but says so. Other units of this machine are not ours.
	said=$(SYSTEMD_UNIT_PATH="$work:" systemd-analyze verify --man=no --recursive-errors=no \
		"$work/$unit.service" 2>&1) || fail "$unit.service is refused: $said"
	said=$(printf '%s\n' "$said" | grep -F "$work" || :)
	[ -z "$said" ] || fail "$unit.service: $said"
done

# $1 unit, $2 limit
limit() {
	said=$(systemd-analyze security --offline=true --threshold="$2" --no-pager "$work/$1.service" 2>&1) ||
		fail "$1.service is more open than $2 tenths:
$(printf '%s\n' "$said" | grep -E '^✗|Overall')"
	printf '%s\n' "$said" | sed -n 's/^→ Overall/units: overall/p'
}
limit pmdpulse-switch 30
limit pmdpulse-switch@a-b 30
limit pmdpulse-agent 10
limit pmdpulse-ves 20

# The two switch units differ in the instance alone.
sed -e 's/instance "default"/instance %i/' -e 's/^Description=.*/& %i/' \
	-e 's/--instance default/--instance %i/' -e 's/switch\.conf/switch-%i.conf/' \
	-e 's|pmdpulse-switch/default|pmdpulse-switch/%i|' pmdpulse-switch.service > "$work/made"
grep -v '^EnvironmentFile=-/etc/default/pmdpulse-switch@%i$' pmdpulse-switch@.service |
	diff -u "$work/made" - || fail "pmdpulse-switch.service and pmdpulse-switch@.service differ"

# Everything that the agent could take the switch down with.
for key in Requires Requisite BindsTo PartOf Conflicts Upholds; do
	if grep -n "^$key=.*pmdpulse" -- *.service collectd.service.d/*; then
		fail "$key= ties the life of one part to another's"
	fi
done

# Users and run directory, made in an empty root.
check_root() {
	mkdir -p "$work/root/etc" "$work/root/run"
	said=$(systemd-sysusers --root="$work/root" "$PWD/sysusers.d/pmdpulse.conf" 2>&1) ||
		fail "sysusers.d/pmdpulse.conf is refused: $said"
	said=$(systemd-tmpfiles --root="$work/root" --create "$PWD/tmpfiles.d/pmdpulse.conf" 2>&1) ||
		fail "tmpfiles.d/pmdpulse.conf is refused: $said"
	said=$(stat -c %a "$work/root/run/pmdpulse")
	[ "$said" = 3770 ] || fail "tmpfiles.d/pmdpulse.conf makes a run directory of mode $said"
}
if [ "$(id -u)" -eq 0 ]; then
	check_root
else
	echo "units: sysusers.d and tmpfiles.d are not tried: that needs root"
fi
exit "$failed"
