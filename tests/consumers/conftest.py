"""Placement behind a real socket, and clients for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from placement_consumers import client
from tests.serving import Served, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@pytest.fixture
def service(application: "WSGIApplication") -> Iterator[Served]:
    """Serve Placement on an empty database."""
    with serving(application) as served:
        yield served


@pytest.fixture
def placement(service: Served) -> client.Client:
    """Give an administrator's client."""
    return client.from_environment(url=service.url, token="admin")
