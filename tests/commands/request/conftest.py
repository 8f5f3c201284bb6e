"""A cloud for all tests of requests."""

import pytest

from placement_clients.client import Client
from tests.commands.request import cloud


@pytest.fixture
def small_cloud(placement: Client) -> cloud.Cloud:
    return cloud.build(placement)
