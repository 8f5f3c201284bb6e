"""Which instances may go to hosts that are kept for reservations."""

import pytest

from placement_reservations import free_pool


@pytest.mark.parametrize(
    ("in_pool", "keys", "passes"),
    [
        (False, [], True),
        (False, ["resources:CUSTOM_RESERVATION_X"], True),
        (True, [], False),
        (True, ["resources:VCPU", "trait:CUSTOM_RESERVATION_X"], False),
        (True, ["resources:VCPU", "resources:CUSTOM_RESERVATION_X"], True),
        (True, ["resources1:CUSTOM_RESERVATION_X"], True),
        (True, ["resources_a-B:CUSTOM_RESERVATION_X"], True),
        (True, ["resources:CUSTOM_RESERVATION"], False),
        (True, ["my_resources:CUSTOM_RESERVATION_X"], False),
    ],
)
def test_only_reservations_get_into_the_pool(
    in_pool: bool, keys: list[str], passes: bool
) -> None:
    assert free_pool.passes(in_pool, dict.fromkeys(keys, "1")) is passes
