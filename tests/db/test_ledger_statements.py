"""However many hosts there are, a question about them takes as many statements."""

from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import cloud
from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid
from tests.statements import statements

pytestmark = pytest.mark.usefixtures("undisturbed")

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

QUERY = "resources=VCPU:40,SRIOV_NET_VF:1"
WORLD = {"query": QUERY, "ask": "explanation", "ignore_consumers": [new_uuid()]}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/ledger/v1/explanation?{QUERY}&holders=true&near=100", None),
        ("GET", f"/ledger/v1/capacity?{QUERY}", None),
        ("POST", "/ledger/v1/what-if", WORLD),
    ],
)
def test_the_number_of_statements_is_the_same_for_few_and_for_many(
    application: "WSGIApplication",
    database: Database,
    method: str,
    path: str,
    body: Any,
) -> None:
    client = Client(application)
    cloud.plant(database, cloud.nested(2))
    # From here on, what has changed is read.
    client.call(method, path, body)
    counts = []
    for _ in range(2):
        client.make_provider(VCPU=8)
        with statements(database) as executed:
            assert client.call(method, path, body).status == 200
        counts.append(len(executed))
        for _ in range(20):
            client.make_provider(VCPU=8)
    assert counts[0] == counts[1] <= 12
