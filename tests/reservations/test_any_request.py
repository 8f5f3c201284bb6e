"""No request to the reservation API causes an internal error."""

import json
import os
from typing import Any
from urllib import parse

import webob
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_reservations import app
from placement_reservations.routes import ROUTES
from tests.property import test_any_request as any_request
from tests.reservations.cloud import Cloud
from tests.reservations.options import make_config
from tests.reservations.test_api import LEASE, RESERVATION
from tests.reservations.visitor import Visitor

EXAMPLES = 2000 if os.environ.get("PLACEMENT_TEST_EVERY_CALL") else 40

TEXTS = st.one_of(
    st.sampled_from(
        [
            *("1", "None", "now", "gpu", "compute-1", "blazar_compute-1"),
            *("2030-03-05 10:00", "2030-03-06 10:00"),
            *("0001-01-01 0:0", "8999-12-31 1:1"),
            *('["==", "$gpu", "True"]', '["and", []]'),
        ]
    ),
    any_request.TEXTS,
)
VALUES = st.one_of(any_request.VALUES, TEXTS)


def mostly(document: dict[str, Any], values: st.SearchStrategy[Any]) -> Any:
    """Draw a document with some members missing, or with other values."""
    return st.fixed_dictionaries(
        {},
        optional={
            name: st.one_of(st.just(value), st.just(value), values)
            for name, value in document.items()
        },
    ).map(lambda drawn: {**document, **drawn})


RESERVATIONS = st.lists(
    st.one_of(mostly(RESERVATION, VALUES), mostly({"id": "x", **RESERVATION}, VALUES)),
    max_size=2,
)
LEASES = st.builds(
    lambda lease, reservations: {**lease, "reservations": reservations},
    mostly(LEASE, VALUES),
    RESERVATIONS,
)
HOSTS = st.builds(
    lambda name, said: {"name": name, **said},
    TEXTS,
    st.dictionaries(TEXTS, VALUES, max_size=2),
)
BODIES = st.one_of(
    LEASES,
    mostly({"name": "x", "end_date": "2030-03-06 10:00"}, VALUES),
    HOSTS,
    st.dictionaries(TEXTS, VALUES, max_size=3),
    st.fixed_dictionaries({"private": st.booleans()}),
    any_request.JUNK,
)
QUERIES = st.lists(
    st.tuples(
        st.sampled_from(["lease_id", "reservation_id", "detail", "all", "x"]), TEXTS
    ),
    max_size=2,
).map(parse.urlencode)


@st.composite
def requests(draw: st.DrawFn) -> webob.Request:
    """Draw a request that resembles those of clients."""
    path = draw(st.sampled_from(list(ROUTES)))
    method = draw(st.sampled_from([*ROUTES[path], "PUT", "POST"]))
    for parameter in ("lease_id", "identifier", "name", "flavor_id"):
        text = draw(st.sampled_from(["1", "2", "9", "{id}", "gpu"]) | TEXTS) or "x"
        path = path.replace(f"{{{parameter}}}", parse.quote(text, safe="{}"))
    request = webob.Request.blank(path, method=method)
    request.query_string = draw(QUERIES)
    if method in ("PUT", "POST", "PATCH"):
        request.content_type = "application/json"
        request.body = json.dumps(draw(BODIES)).encode()
    return request


@settings(max_examples=EXAMPLES)
@given(asked=st.lists(requests(), min_size=1, max_size=3))
def test_nothing_a_caller_sends_is_a_failure_of_ours(
    cloud: Cloud, asked: list[webob.Request]
) -> None:
    application = app.build(make_config(), cloud.world)
    visitor = Visitor(application)
    visitor.call("POST", "/v1/os-hosts", {"name": "compute-1"})
    known = visitor.get("/v1/leases")["leases"]
    for request in asked:
        if known:
            found = request.path_info.replace("{id}", known[-1]["id"])
            request.path_info = found
        response = request.get_response(application)
        assert response.status_int < 500, (request, response.text)
        if response.status_int >= 400:
            assert json.loads(response.body)["error_code"] == response.status_int
    for each in known:
        visitor.call("DELETE", f"/v1/leases/{each['id']}")
