# SPDX-License-Identifier: Apache-2.0
"""Two hosts as network namespaces, each with a veth whose other end is a port of the switch."""

import contextlib
import json
import os
import subprocess


def sh(*argv, check=True):
    return subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=60, check=check)


class Host:
    """A namespace with one interface, eth0; port_device is the end that the switch opens."""

    def __init__(self, name, number):
        self.name = f"pmdp{os.getpid()}{name}"
        self.port_device = f"pp{os.getpid()}{name}"
        self.address = f"10.61.0.{number}"

    def create(self):
        sh("ip", "netns", "add", self.name)
        self.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        sh("ip", "link", "add", self.port_device, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        # The port's end is the switch's alone: the kernel must send nothing there by itself.
        sh("sysctl", "-qw", f"net.ipv6.conf.{self.port_device}.disable_ipv6=1", check=False)
        sh("ip", "link", "set", self.port_device, "up", "arp", "off")
        self.run("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        # A switch forwards frames as they are: whole, and with their checksums.
        self.run("ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "link", "set", "lo", "up")

    def delete(self):
        for argv in (("ip", "link", "del", self.port_device), ("ip", "netns", "del", self.name)):
            with contextlib.suppress(subprocess.SubprocessError):
                sh(*argv, check=False)

    def command(self, *argv):
        # Not `ip netns exec`: it mounts, which a chroot that is no mount point refuses.
        return ["nsenter", f"--net=/run/netns/{self.name}", *map(str, argv)]

    def run(self, *argv):
        return sh(*self.command(*argv))

    def counted(self):
        """What the kernel counted on the host's interface."""
        stats = json.loads(self.run("ip", "-j", "-s", "link", "show", "dev", "eth0").stdout)[0]["stats64"]
        return {f"{way}_{what}": stats[way][what] for way in ("tx", "rx") for what in ("packets", "bytes")}


@contextlib.contextmanager
def two_hosts():
    hosts = [Host("a", 1), Host("b", 2)]
    try:
        for host in hosts:
            host.create()
        yield hosts
    finally:
        for host in hosts:
            host.delete()
