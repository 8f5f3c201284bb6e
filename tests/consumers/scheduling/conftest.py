"""A cloud for all tests of requests."""

import pytest

from placement_consumers.client import Client
from tests.consumers.scheduling import cloud


@pytest.fixture
def small_cloud(placement: Client) -> cloud.Cloud:
    return cloud.build(placement)
