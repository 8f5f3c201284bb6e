"""The filter of Nova's scheduler, with stand-ins for what Nova gives it."""

import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

RESERVED = {"resources:CUSTOM_RESERVATION_X": "1"}


class BaseHostFilter:
    """As in Nova: a filter says whether it runs for rebuilds, and what passes."""

    RUN_ON_REBUILD = False

    def host_passes(self, host_state: Any, filter_properties: Any) -> bool:
        raise NotImplementedError


@pytest.fixture
def filters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give the module, as a process of Nova's scheduler imports it."""
    nova, scheduler = types.ModuleType("nova"), types.ModuleType("nova.scheduler")
    base: Any = types.ModuleType("nova.scheduler.filters")
    base.BaseHostFilter = BaseHostFilter
    scheduler.filters = base  # type: ignore[attr-defined]
    nova.scheduler = scheduler  # type: ignore[attr-defined]
    for module in (nova, scheduler, base):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    name = "placement_reservations.nova_filter"
    yield importlib.import_module(name)
    sys.modules.pop(name)


def host(*aggregates: str) -> Any:
    found = [types.SimpleNamespace(name=name, metadata={}) for name in aggregates]
    return types.SimpleNamespace(host="compute-1", aggregates=found)


def server(extra_specs: dict[str, str] | None) -> Any:
    flavor = types.SimpleNamespace(extra_specs=extra_specs)
    return types.SimpleNamespace(flavor=flavor)


@pytest.mark.parametrize(
    ("aggregates", "extra_specs", "passes"),
    [
        ([], {}, True),
        (["rack-1"], {}, True),
        (["rack-1", "freepool"], {}, False),
        (["freepool"], None, False),
        (["freepool"], RESERVED, True),
        (["rack-1"], RESERVED, True),
        (["freepool"], {"resources:VCPU": "1", **RESERVED}, True),
        (["freepool"], {"resources:VCPU": "1"}, False),
        (["freepool"], {"trait:CUSTOM_RESERVATION_X": "required"}, False),
        (["freepool"], {"resources1:CUSTOM_RESERVATION_X": "1"}, True),
        (["freepool"], {"resources_a-B:CUSTOM_RESERVATION_X": "1"}, True),
        (["freepool"], {"resources:CUSTOM_RESERVATION": "1"}, False),
        (["freepool"], {"my_resources:CUSTOM_RESERVATION_X": "1"}, False),
    ],
)
def test_ordinary_servers_stay_off_reservable_hosts(
    filters: Any, aggregates: list[str], extra_specs: Any, passes: bool
) -> None:
    chosen = filters.ReservedHostsFilter()
    assert chosen.host_passes(host(*aggregates), server(extra_specs)) is passes


def test_the_pool_can_have_another_name(filters: Any) -> None:
    class Mine(filters.ReservedHostsFilter):  # type: ignore[misc]
        pool = "leased"

    assert not Mine().host_passes(host("leased"), server({}))
    assert Mine().host_passes(host("freepool"), server({}))
