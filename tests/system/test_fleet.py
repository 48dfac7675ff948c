# SPDX-License-Identifier: Apache-2.0
"""Three hosts and a centre: who stalls is named, and who is cut off, with the shipped configurations
of collectd and Prometheus. The fleet dashboard's own queries are asked."""

import json
import os
import shutil

import pytest

from lib import collectd
from lib.fleet import TOP, Fleet
from lib.process import built
from lib.switch import HOOKED
from lib.wait import holds_for, wait_for

NAMES = ("alpha", "beta", "gamma")
STALL_MS = 4000
DEAD = 2
CUT_OFF = 2000  # trouble of a host that was not heard of for 30 s

pytestmark = [
    pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing() or "-"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root (network namespaces)"),
    pytest.mark.skipif(os.cpu_count() < 2, reason="needs two CPUs: PMDs poll on the second"),
    pytest.mark.skipif(not os.path.exists(built(HOOKED)), reason="no switch with test hooks is built"),
]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    try:
        found = Fleet(NAMES, str(tmp_path_factory.mktemp("fleet")))
    except OSError as error:
        pytest.skip(f"no network namespaces: {error}")
    yield found
    found.cleanup()


@pytest.fixture
def prometheus(fleet):
    if not fleet.prometheus:
        pytest.skip("prometheus is not installed (package prometheus)")
    return fleet


def all_are_seen(fleet, names=NAMES):
    wait_for(lambda: fleet.exposed("collectd_pmdpulse_switch_up", pmdpulse="default") ==
             {name: 1.0 for name in names}, 30, fleet.logs)


def stall(fleet, name):
    """A stall of that host's PMD; returns once the centre sees it, and checks that it sees no other."""
    host = fleet.hosts[name]
    label = "default:" + host.switch.pmd()["name"].replace("/", "_")
    before = len(fleet.collectd.notifications(host=name, detail="pmd-stall"))
    host.switch.hook("block", STALL_MS)
    states = wait_for(lambda: (found := fleet.exposed("collectd_pmdpulse_thread_state", pmdpulse=label))
                      .get(name) == DEAD and found, 15, fleet.logs)
    assert [host for host, state in states.items() if state == DEAD] == [name], states
    # The notification comes by the network plugin: with the host's name, and without meta data.
    told = wait_for(lambda: fleet.collectd.notifications(host=name, detail="pmd-stall")[before:], 15,
                    fleet.logs)
    assert told[0]["plugin"] == "pmdpulse" and told[0]["severity"] == 1
    assert "stalled" in told[0]["message"]
    assert set(told[0]["meta"]) == {"network:received"}, told[0]
    return label


def dashboard(fleet, title):
    """[(labels, value)] for each query of a panel of the fleet dashboard."""
    path = os.path.join(TOP, "contrib/grafana/dashboards/pmdpulse-fleet.json")
    with open(path, encoding="utf-8") as file:
        panel = next(p for p in json.load(file)["panels"] if p["title"] == title)
    answers = []
    for target in panel["targets"]:
        query = target["expr"].replace("$job", "pmdpulse").replace("$instance", ".+")
        answers.append(fleet.ask(query.replace("$__rate_interval", "4s").replace("$__range", "30s")))
    return answers


def worst(fleet):
    """Hosts by the first query of the table, worst first, with their number of trouble, as (trouble, host)."""
    rows = dashboard(fleet, "Switches, worst first")[0]
    return sorted(((value, labels["instance"]) for labels, value in rows), reverse=True)


def silence(fleet):
    """Seconds since each host was heard of, as the table says."""
    return {labels["instance"]: value for labels, value in dashboard(fleet, "Switches, worst first")[-1]}


def test_values_of_all_hosts_reach_the_centre(fleet):
    all_are_seen(fleet)
    for name in ("collectd_pmdpulse_agent_up", "collectd_pmdpulse_relay_active"):
        wait_for(lambda n=name: fleet.exposed(n, pmdpulse="default") == {name: 1.0 for name in NAMES}, 20,
                 fleet.logs)
    log = fleet.collectd.log()
    assert "Dataset not found" not in log and "types.db" not in log, log


def test_the_host_that_stalls_is_named(fleet):
    all_are_seen(fleet)
    label = stall(fleet, "beta")
    wait_for(lambda: fleet.exposed("collectd_pmdpulse_thread_state", pmdpulse=label)["beta"] == 1.0, 20,
             fleet.logs)


def test_prometheus_names_the_host_that_stalls(prometheus):
    fleet = prometheus
    all_are_seen(fleet)
    wait_for(lambda: [trouble for trouble, _ in worst(fleet)] == [0, 0, 0], 30,
             lambda: f"quiet: {worst(fleet)}\n{fleet.logs()}")
    stall(fleet, "alpha")
    ranking = wait_for(lambda: (found := worst(fleet))[0][0] > 0 and found, 15, fleet.logs)
    assert ranking[0][1] == "alpha" and [trouble for trouble, _ in ranking[1:]] == [0, 0], ranking
    wait_for(lambda: fleet.firing("PmdpulseStall") == ["alpha"], 15,
             lambda: f"alerts: {fleet.ask('ALERTS')}")
    stalls = dashboard(fleet, "Switches, worst first")[5]
    assert {labels["instance"] for labels, value in stalls if value > 0.5} <= {"alpha", "beta"}
    wait_for(lambda: worst(fleet)[0][0] == 0, 30, lambda: f"the end of it: {worst(fleet)}")


def test_a_host_that_is_cut_off(prometheus):
    fleet = prometheus
    all_are_seen(fleet)
    fleet.hosts["gamma"].cut()
    wait_for(lambda: fleet.firing("PmdpulseSeriesLost") == ["gamma"], 30,
             lambda: f"alerts: {fleet.ask('ALERTS')}\n{fleet.logs()}")
    ages = wait_for(lambda: (found := silence(fleet)).get("gamma", 0) > 8 and found, 20, lambda: silence(fleet))
    assert set(ages) == set(NAMES) and max(ages["alpha"], ages["beta"]) < 8, ages
    # Another one's stall is still that one's.
    label = stall(fleet, "beta")
    # The one of which nothing is known is the worst, and still has its row.
    ranking = wait_for(lambda: (found := worst(fleet))[0][0] >= CUT_OFF and found, 40, lambda: worst(fleet))
    assert ranking[0] == (CUT_OFF, "gamma") and {name for _, name in ranking} == set(NAMES), ranking
    assert ranking[1][0] < CUT_OFF, ranking
    wait_for(lambda: fleet.exposed("collectd_pmdpulse_thread_state", pmdpulse=label).get("beta") == 1.0, 20,
             fleet.logs)
    fleet.hosts["gamma"].join()
    all_are_seen(fleet)
    wait_for(lambda: fleet.firing("PmdpulseSeriesLost") == [], 30, lambda: f"{fleet.ask('ALERTS')}")
    wait_for(lambda: worst(fleet)[0][0] < CUT_OFF, 15, lambda: worst(fleet))
    holds_for(lambda: fleet.firing("PmdpulseSeriesLost") == [], 1, lambda: f"{fleet.ask('ALERTS')}", every=0.2)
