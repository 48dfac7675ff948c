#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# preflight.sh [CONFIG]: tries what collectd needs before collectd does, and names what is missing.
#
# collectd says "could not load plugin" and leaves the reason to ldd(1); its -t checks nothing in
# this version. So: the libraries of the plugin and of all plugins that CONFIG loads, then the plugin
# itself under `collectd -T` with a configuration of its own, which touches nothing that runs.
# Exit 0 all is well, 1 something is missing. PMDPULSE_PLUGINDIR: another folder of plugins.
set -eu

config=${1:-/etc/collectd/collectd.conf}
folder=${PMDPULSE_PLUGINDIR:-/usr/lib/collectd}
collectd=$(command -v collectd || echo /usr/sbin/collectd)
bad=0

complain() {
	echo "collectd-preflight: $*" >&2
	bad=1
}

package_of() {
	case $1 in
	libmicrohttpd.so.12) echo libmicrohttpd12 ;;
	libprotobuf-c.so.1) echo libprotobuf-c1 ;;
	libyajl.so.2) echo libyajl2 ;;
	libcurl-gnutls.so.4) echo libcurl3-gnutls ;;
	librdkafka.so.1) echo librdkafka1 ;;
	libpq.so.5) echo libpq5 ;;
	*) echo '' ;;
	esac
}

# LoadPlugin lines of a file and of what it includes by name or folder.
loaded() {
	sed -n 's/^[[:space:]]*<\{0,1\}LoadPlugin[[:space:]]\{1,\}"\{0,1\}\([A-Za-z0-9_]*\).*/\1/Ip' \
		"$1" 2> /dev/null || true
	sed -n 's/^[[:space:]]*<\{0,1\}Include[[:space:]]\{1,\}"\{0,1\}\([^">]*\)"\{0,1\}.*/\1/Ip' \
		"$1" 2> /dev/null | while read -r included; do
		# shellcheck disable=SC2086 # may be a pattern
		for entry in $included; do
			if [ -d "$entry" ]; then
				for file in "$entry"/*.conf; do
					[ ! -e "$file" ] || loaded "$file"
				done
			elif [ -e "$entry" ]; then
				loaded "$entry"
			fi
		done
	done
}

check_libraries() {
	object=$folder/$1.so
	if [ ! -e "$object" ]; then
		[ "$1" != pmdpulse ] || complain "$object is not there: install collectd-plugin-pmdpulse"
		return 0
	fi
	for library in $(ldd "$object" 2> /dev/null | sed -n 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p'); do
		package=$(package_of "$library")
		complain "plugin $1 needs $library, which is missing;" \
			"${package:+install it with: apt-get install $package}"
	done
}

for plugin in pmdpulse $(loaded "$config" | sort -u | grep -vx pmdpulse); do
	check_libraries "$plugin"
done

if [ ! -x "$collectd" ]; then
	complain "collectd is not there: install collectd-core"
elif [ "$bad" = 0 ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	cat > "$tmp/collectd.conf" <<-END
		Hostname "preflight"
		BaseDir "$tmp"
		PIDFile "$tmp/collectd.pid"
		PluginDir "$folder"
		LoadPlugin pmdpulse
		<Plugin pmdpulse>
			RunDir "$tmp"
			SendNotification false
			DispatchValues false
		</Plugin>
	END
	if ! "$collectd" -T -C "$tmp/collectd.conf" > "$tmp/out" 2>&1; then
		complain "collectd does not load the plugin:"
		cat "$tmp/out" >&2
	fi
fi
exit "$bad"
