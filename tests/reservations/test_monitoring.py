"""Health and metrics of the reservation service."""

from typing import Any

import webob

from placement_foundation.observing import metrics, telemetry
from placement_reservations import app, measure
from tests import programs
from tests.reading import Reading
from tests.reservations.cloud import DAY, TODAY, Cloud
from tests.reservations.options import make_config


def get(application: Any, path: str) -> str:
    response: webob.Response = webob.Request.blank(path).get_response(application)
    assert response.status_int == 200
    return str(response.text)


def test_probes(cloud: Cloud) -> None:
    application = app.build(make_config(), cloud.world)
    assert get(application, "/livez") == "ok\n"
    assert get(application, "/readyz") == "database: ok\nschema: ok\n"


def test_events_repairs_and_degraded_leases_are_counted(cloud: Cloud) -> None:
    port = programs.free_port()
    config = make_config({("metrics", "address"): f"127.0.0.1:{port}"})
    application: Any = app.build(config, cloud.world)
    ((bound, page),) = application.elsewhere
    try:
        lease = cloud.order(3, start=TODAY + DAY)
        with cloud.wire.cut():
            cloud.turn(advance=DAY)
            cloud.turn()
        waiting = Reading(get(page, "/metrics"))
        cloud.run_due(advance=DAY / 24)
        cloud.remove_slots()
        cloud.turn()
        repaired = Reading(get(page, "/metrics"))
    finally:
        bound.close()
        telemetry.remove(metrics.switch_on(measure.PREFIX, measure.MEASURES))
    assert cloud.status(lease) == "ACTIVE"
    events = "placement_reservations_events_total"
    assert waiting.get(events, event="start_lease", outcome="put_off") == 2
    assert waiting.get("placement_reservations_leases_degraded") == 1
    assert repaired.get(events, event="start_lease", outcome="done") == 1
    found = "no_provider"
    assert repaired.get("placement_reservations_repairs_total", found=found) == 1
    assert repaired.get("placement_reservations_leases_degraded") == 0
    assert repaired.get("placement_reservations_database_connections") > 0
