"""The files under deploy/ name what exists."""

import configparser
import json
import multiprocessing
import re
import runpy
import types
from pathlib import Path

import pytest
import yaml

from placement import measure as placement_measure
from placement.db import models
from placement.monitoring import fleet
from placement.objects import total
from placement_foundation.observing import metrics, telemetry
from placement_foundation.observing.telemetry import Kind, Measure
from placement_foundation.serving import web_server
from placement_nodes import conf
from placement_nodes import measure as nodes_measure
from placement_reservations import measure as reservations_measure

DEPLOY = Path(__file__).parents[2] / "deploy"
APPLICATION = "placement.wsgi.api:application"
HISTOGRAM = ("_bucket", "_sum", "_count")


def test_gunicorn_serves_the_application_on_the_usual_port() -> None:
    settings = runpy.run_path(str(DEPLOY / "gunicorn.conf.py"))
    assert settings["wsgi_app"] == APPLICATION
    assert settings["bind"] == ["0.0.0.0:8778"]


def test_gunicorn_knows_the_settings() -> None:
    from gunicorn.config import Config

    known = Config().settings
    settings = runpy.run_path(str(DEPLOY / "gunicorn.conf.py"))
    ours = {name for name in settings if not name.startswith("__")}
    assert ours - {"multiprocessing", "os"} <= set(known)


def test_a_container_has_as_many_processes_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = DEPLOY / "gunicorn.conf.py"
    monkeypatch.delenv("WEB_CONCURRENCY", raising=False)
    assert runpy.run_path(str(path))["workers"] == multiprocessing.cpu_count()
    monkeypatch.setenv("WEB_CONCURRENCY", "77")
    assert runpy.run_path(str(path))["workers"] == 77
    manifest = (DEPLOY / "kubernetes" / "placement.yaml").read_text()
    assert 'name: WEB_CONCURRENCY, value: "2"' in manifest


def test_gunicorn_has_the_settings_of_our_command() -> None:
    settings = runpy.run_path(str(DEPLOY / "gunicorn.conf.py"))
    assert {name: settings[name] for name in web_server.SETTINGS} == web_server.SETTINGS


def test_uwsgi_serves_the_application_on_the_usual_port() -> None:
    parser = configparser.ConfigParser()
    parser.read(DEPLOY / "uwsgi.ini")
    assert parser["uwsgi"]["wsgi-file"].endswith("/placement.wsgi")
    assert parser["uwsgi"]["http11-socket"] == "0.0.0.0:8778"


@pytest.mark.parametrize(
    ("name", "port"),
    [
        ("placement", "8778"),
        ("placement-nodes", "6385"),
        ("placement-nodes-sync", "9179"),
        ("placement-reservations", "1234"),
    ],
)
def test_probes_ask_the_port_that_is_served(name: str, port: str) -> None:
    [deployment, *others] = yaml.safe_load_all(
        (DEPLOY / "kubernetes" / f"{name}.yaml").read_text()
    )
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    assert port in ports.values()
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert ports[container[probe]["httpGet"]["port"]] == port
    for service in others:
        for each in service["spec"].get("ports", []):
            assert each["targetPort"] in ports


def test_the_record_of_the_agent_outlives_its_pod() -> None:
    path = DEPLOY / "kubernetes" / "placement-nodes-sync.yaml"
    deployment, *others = yaml.safe_load_all(path.read_text())
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    places = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    claims = {
        each["name"]: each["persistentVolumeClaim"]["claimName"]
        for each in pod["volumes"]
        if "persistentVolumeClaim" in each
    }
    given = {each["name"]: each["value"] for each in container["env"]}
    # The rest of the pod's file system cannot be written.
    directory = f"{given['XDG_DATA_HOME']}/{conf.PROJECT}"
    assert claims[places[directory]] in [
        each["metadata"]["name"]
        for each in others
        if each["kind"] == "PersistentVolumeClaim"
    ]


# Where a command of a page installs a file or a directory.
INSTALLED = r"^    install (?:.*\\\n)?.* (/\S+)$"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("placement-nodes", ["placement-nodes", "placement-nodes-sync"]),
        (
            "placement-reservations",
            ["placement-reservations", "placement-reservations-events"],
        ),
    ],
)
def test_a_page_makes_what_its_units_read(page: str, names: list[str]) -> None:
    guide = (DEPLOY.parent / "docs" / f"{page}.rst").read_text()
    installed = set(re.findall(INSTALLED, guide, re.MULTILINE))
    for name in names:
        unit = (DEPLOY / f"{name}.service").read_text()
        assert f" {re.findall('^User=(.*)', unit, re.MULTILINE)[0]}\n" in guide
        # The files of Placement cannot be read by this user.
        assert set(re.findall(r"/etc/\S+", unit)) <= installed
        assert f"/etc/systemd/system/{name}.service" in installed


def test_the_guide_says_which_rights_each_of_our_tables_needs() -> None:
    guide = (DEPLOY.parent / "docs" / "operators-guide.rst").read_text()
    _, _, rest = guide.partition("Which rights the account needs:")
    rights, _, _ = rest.partition("So an account")
    assert [name for name in models.OWN.tables if f"``{name}``" not in rights] == []


def test_the_guide_lists_each_metric() -> None:
    guide = (DEPLOY.parent / "docs" / "monitoring.rst").read_text()
    for measure in (*telemetry.MEASURES, *placement_measure.MEASURES):
        assert f"``{placement_measure.PREFIX}{measure.name}" in guide
        assert all(f"``{label}``" in guide for label in measure.labels)


@pytest.mark.parametrize(
    ("page", "prefix", "measures"),
    [
        (
            "placement-reservations",
            reservations_measure.PREFIX,
            reservations_measure.MEASURES,
        ),
        ("placement-nodes", nodes_measure.SYNC_PREFIX, nodes_measure.SYNC_MEASURES),
    ],
)
def test_the_page_of_a_service_lists_each_of_its_metrics(
    page: str, prefix: str, measures: tuple[Measure, ...]
) -> None:
    text = (DEPLOY.parent / "docs" / f"{page}.rst").read_text()
    for measure in measures:
        ending = "_total" if measure.kind is Kind.COUNTER else ""
        assert f"``{prefix}{measure.name}{ending}``" in text


def test_a_process_of_gunicorn_that_ended_is_forgotten() -> None:
    settings = runpy.run_path(str(DEPLOY / "gunicorn.conf.py"))
    forgotten: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "forget", forgotten.append)
        settings["child_exit"](object(), types.SimpleNamespace(pid=17))
    assert forgotten == [17]


# The measures of each program besides those of all, by the prefix of their names.
MEASURES = {
    placement_measure.PREFIX: placement_measure.MEASURES,
    reservations_measure.PREFIX: reservations_measure.MEASURES,
    nodes_measure.PREFIX: (),
    nodes_measure.SYNC_PREFIX: nodes_measure.SYNC_MEASURES,
}


def known_metrics() -> set[str]:
    """Return the names of all series that there can be."""
    nothing = total.Totals(0, {}, {})
    names = {family.name for family in fleet.families(nothing, 0)}
    endings = {Kind.COUNTER: ("_total",), Kind.HISTOGRAM: HISTOGRAM}
    for prefix, measures in MEASURES.items():
        for measure in (*telemetry.MEASURES, *measures):
            names |= {
                f"{prefix}{measure.name}{ending}"
                for ending in endings.get(measure.kind, ("",))
            }
    return names


@pytest.mark.parametrize("name", ["grafana.json", "alerts.yml"])
def test_metrics_that_are_looked_at_exist(name: str) -> None:
    text = (DEPLOY / name).read_text()
    named = set(re.findall(rf"\b{placement_measure.PREFIX}\w+", text))
    assert len(named) > 5
    assert named <= known_metrics()


def test_the_dashboard_is_one() -> None:
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)) > 10
    assert all(panel["targets"] for panel in dashboard["panels"])


def test_each_alert_leads_to_a_page_that_is_there() -> None:
    runbook = (DEPLOY.parent / "docs" / "runbook.rst").read_text()
    titles = re.findall(r"^(.+)\n-+$", runbook, re.MULTILINE)
    anchors = {re.sub(r"\W+", "-", title.lower()) for title in titles}
    assert len(anchors) == len(titles) > 10
    text = (DEPLOY / "alerts.yml").read_text()
    places = re.findall(r"runbook: runbook.html(?:#(\S+))?$", text, re.MULTILINE)
    assert len(places) == text.count("- alert:")
    assert set(places) - {""} <= anchors
