# SPDX-License-Identifier: Apache-2.0
"""Incidents as VES 7.2.1 events, against ONAP's schema; their own JSON beside them."""

import datetime
import json
import os
import subprocess

import jsonschema
import pytest

from lib.process import built
from lib.ves import parse

SCHEMA = os.path.join(os.path.dirname(__file__), "../data/CommonEventFormat_30.2.1_ONAP.json")
KEYS = ["id", "seq", "kind", "phase", "severity", "instance", "thread", "started_at", "detected_at",
        "emitted_at", "duration_s", "state", "cause", "culprit", "evidence", "message"]


def printed():
    out = subprocess.run([built("tests/tools/ves_samples")], stdout=subprocess.PIPE, timeout=60, check=True)
    text = out.stdout.decode("utf-8")  # strict: no invalid byte comes out, whatever went in
    return [parse(line) for line in text.split("\n") if line]


@pytest.fixture(scope="module")
def samples():
    return [line for line in printed() if "incident" in line]


@pytest.fixture(scope="module")
def heartbeat():
    return printed()[-1]["heartbeat"]


@pytest.fixture(scope="module")
def validator():
    with open(SCHEMA, encoding="utf-8") as file:
        return jsonschema.Draft4Validator(json.load(file))


def test_every_kind_and_phase_is_there(samples):
    made = {(s["incident"]["kind"], s["incident"]["phase"]) for s in samples}
    kinds = {kind for kind, _ in made}
    assert {"pmd-stall", "pmd-starved", "thread-gone", "switch-gone", "switch-stopped", "switch-back",
            "control-stuck", "link", "drops", "agent-late", "version-mismatch"} <= kinds
    assert all((kind, phase) in made for kind in kinds - {"unknown"}
               for phase in ("raise", "update", "clear"))


def test_ves_is_valid(samples, validator):
    for sample in samples:
        ves = sample["ves"]
        assert list(ves) == ["event"]  # the schema's root asks for nothing: a flat object would pass
        errors = [error.message for error in validator.iter_errors(ves)]
        assert not errors, (errors, sample)


def test_state_changes_are_valid(samples, validator):
    changes = [s for s in samples if s["state_change"]]
    for sample in changes:
        assert list(sample["state_change"]) == ["event"]
        errors = [error.message for error in validator.iter_errors(sample["state_change"])]
        assert not errors, (errors, sample)
        header = sample["state_change"]["event"]["commonEventHeader"]
        assert header["domain"] == "stateChange"
        assert header["sequence"] == sample["incident"]["seq"]
        assert header["eventId"].startswith(sample["incident"]["id"])


def test_what_changes_a_state(samples):
    """Kind and phase: old state, new state. Nothing else does."""
    found = {}
    for sample in samples:
        incident = sample["incident"]
        if not incident["id"].startswith("default-1764"):
            continue
        fields = sample["state_change"] and sample["state_change"]["event"]["stateChangeFields"]
        found[incident["kind"], incident["phase"]] = \
            fields and (fields["oldState"], fields["newState"])
    assert {key: value for key, value in found.items() if value} == {
        ("link", "raise"): ("inService", "outOfService"),
        ("link", "clear"): ("outOfService", "inService"),
        ("switch-gone", "raise"): ("inService", "outOfService"),
        ("switch-stopped", "raise"): ("inService", "maintenance"),
        ("switch-back", "raise"): ("outOfService", "inService"),
    }
    ports = {s["state_change"]["event"]["stateChangeFields"]["stateInterface"] for s in samples
             if s["state_change"] and s["incident"]["kind"] == "link"}
    assert {'a"b', "a\\b", "ü", "a/b", "x" * 63} <= ports


def test_heartbeat_is_valid(heartbeat, validator):
    errors = [error.message for error in validator.iter_errors(heartbeat)]
    assert not errors, (errors, heartbeat)
    event = heartbeat["event"]
    assert event["commonEventHeader"]["domain"] == "heartbeat"
    assert event["commonEventHeader"]["sequence"] == 7
    assert event["heartbeatFields"]["heartbeatInterval"] == 60
    assert event["heartbeatFields"]["additionalFields"]['a"b'] == 'a"b'


def test_losses_are_told_in_the_event(samples):
    for sample in samples:
        told = sample["ves"]["event"]["faultFields"]["alarmAdditionalInformation"] \
            .get("events_lost_before")
        assert told in (None, "1", "2", str(2**64 - 1))
        if sample["state_change"]:
            fields = sample["state_change"]["event"]["stateChangeFields"]["additionalFields"]
            assert fields.get("events_lost_before") == told


def test_ves_carries_the_incident(samples):
    for sample in samples:
        incident = sample["incident"]
        header, fault = (sample["ves"]["event"][key] for key in ("commonEventHeader", "faultFields"))
        assert header["eventId"] == incident["id"]
        assert header["sequence"] == incident["seq"]
        assert header["domain"] == "fault"
        assert fault["alarmCondition"] == incident["kind"]
        over = incident["phase"] == "clear" or incident["severity"] == "OKAY"
        severity = {"FAILURE": "CRITICAL", "WARNING": "WARNING", "OKAY": "NORMAL"}[incident["severity"]]
        assert fault["eventSeverity"] == ("NORMAL" if over else severity)
        extra = fault["alarmAdditionalInformation"]
        assert extra["cause"] == incident["cause"]
        assert extra["phase"] == incident["phase"]


def test_ves_of_one_incident_has_one_id_and_start(samples):
    for kind in {s["incident"]["kind"] for s in samples} - {"unknown"}:
        headers = [s["ves"]["event"]["commonEventHeader"] for s in samples
                   if s["incident"]["kind"] == kind and s["incident"]["id"].startswith("default-1764")]
        assert len({header["eventId"] for header in headers}) == 1
        assert {header["startEpochMicrosec"] for header in headers} == {1764500000123456}
        assert len({header["sequence"] for header in headers}) == 3


def test_ves_fits(samples):
    for sample in samples:
        text = json.dumps(sample["ves"], ensure_ascii=False, separators=(",", ":"))
        assert len(json.dumps(text, ensure_ascii=False).encode()) - 2 <= 3000, text


def test_names_survive(samples):
    found = {s["incident"]["thread"]["name"] for s in samples if s["incident"]["thread"]}
    for name in ('a"b', "a\\b", "ü", "a/b", "a.b", "\ufffd\ufffd\ufffd"):
        assert name in found
    ports = {s["incident"]["evidence"].get("port") for s in samples}
    assert "x" * 63 in ports
    interfaces = {s["ves"]["event"]["faultFields"]["alarmInterfaceA"] for s in samples}
    assert {'a"b', "a\\b", "ü", "a/b", "x" * 63} <= interfaces


def test_incident_json_is_the_contract(samples):
    for sample in samples:
        incident = sample["incident"]
        assert list(incident) == KEYS
        assert isinstance(incident["seq"], int)
        assert isinstance(incident["duration_s"], float)
        assert incident["severity"] in ("FAILURE", "WARNING", "OKAY")
        assert len(incident["message"].encode()) < 3 * 256
        for key in ("started_at", "detected_at", "emitted_at"):
            if incident[key] is None:
                continue
            at = datetime.datetime.fromisoformat(incident[key])
            assert at.tzinfo is not None
            assert len(incident[key].split(".")[1]) == len("123456+00:00")
    plain = next(s["incident"] for s in samples if s["incident"]["kind"] == "pmd-stall")
    assert plain["duration_s"] == 0.301000001
    assert plain["thread"] == {"name": "pmd-c01/id:2", "tid": 4242, "core": 1}
    assert plain["culprit"] == {"comm": "pmd-c01/id:2", "pid": 4343, "tid": 4344,
                                "class": "SCHED_FIFO", "took_s": 0.3}
    at = datetime.datetime.fromisoformat(plain["started_at"])
    assert round(at.timestamp() * 1e6) == 1764500000123456


def test_messages_are_one_line(samples):
    for sample in samples:
        if sample["incident"]["id"].startswith("default-1764"):
            message = sample["incident"]["message"]
            assert message.isprintable() and len(message.encode()) < 256
