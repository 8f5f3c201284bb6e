"""The samples under etc/ are what the code would generate: run ``tox -e samples``."""

import dataclasses
from pathlib import Path
from types import ModuleType

import pytest
from oslo_config import cfg
from oslo_config import generator as config_generator
from oslo_policy import generator as policy_generator

from placement import conf, policy
from placement_nodes import conf as nodes_conf
from placement_nodes import policy as nodes_policy
from placement_reservations import conf as reservations_conf
from placement_reservations import policy as reservations_policy

ETC = Path(__file__).parents[2] / "etc"


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """A service: its options and rules, the paths of its samples, and their content."""

    conf: ModuleType
    policy: ModuleType
    configuration: str
    rules: str
    # The sections of libraries change with their releases.
    ours: tuple[str, ...]

    def generate_configuration(self, target: Path) -> str:
        source = ETC / self.configuration.replace(".conf.sample", GENERATED_CONFIG)
        asked = cfg.ConfigOpts()
        config_generator.register_cli_opts(asked)
        asked(["--config-file", str(source), "--output-file", str(target)])
        config_generator.generate(asked)
        return target.read_text()

    def generate_rules(self, target: Path) -> str:
        source = ETC / self.configuration.replace(".conf.sample", GENERATED_POLICY)
        policy_generator.generate_sample(
            ["--config-file", str(source), "--output-file", str(target)],
            conf=cfg.ConfigOpts(),
        )
        return target.read_text()

    def sections(self) -> dict[str, str]:
        return sections((ETC / self.configuration).read_text())

    def lines(self) -> list[str]:
        return (ETC / self.rules).read_text().splitlines()


GENERATED_CONFIG = "-config-generator.conf"
GENERATED_POLICY = "-policy-generator.conf"
PLACEMENT = Service(
    conf,
    policy,
    "placement.conf.sample",
    "policy.yaml.sample",
    ("api", "placement", "placement_database", "workarounds"),
)
NODES = Service(
    nodes_conf,
    nodes_policy,
    "placement-nodes.conf.sample",
    "placement-nodes-policy.yaml.sample",
    ("api", "database", "nodes", "sync"),
)

RESERVATIONS = Service(
    reservations_conf,
    reservations_policy,
    "placement-reservations.conf.sample",
    "placement-reservations-policy.yaml.sample",
    ("api", "database", "reservations", "free_pool"),
)


def sections(text: str) -> dict[str, str]:
    """Return the sections of a configuration file, keyed by name."""
    found = {}
    for section in ("\n" + text).split("\n[")[1:]:
        name, _, rest = section.partition("]\n")
        found[name] = rest.strip()
    return found


@pytest.fixture(
    params=[PLACEMENT, NODES, RESERVATIONS], ids=["placement", "nodes", "reservations"]
)
def service(request: pytest.FixtureRequest) -> Service:
    assert isinstance(request.param, Service)
    return request.param


def test_the_sample_configuration_has_our_options_as_they_are(
    service: Service, tmp_path: Path
) -> None:
    generated = sections(service.generate_configuration(tmp_path / "conf"))
    sample = service.sections()
    for name in service.ours:
        assert sample[name] == generated[name]


def test_the_sample_configuration_has_all_groups(service: Service) -> None:
    groups = {str(group) for group, _ in service.conf.list_options()}
    assert set(service.sections()) == {"DEFAULT", *groups}


def test_the_sample_configuration_has_our_defaults_for_options_of_libraries() -> None:
    sample = PLACEMENT.sections()
    assert "routes=INFO" in sample["DEFAULT"]
    assert "OpenStack-API-Version" in sample["cors"]
    assert "X-OpenStack-Ironic-API-Version" in NODES.sections()["cors"]


def test_the_sample_configuration_changes_nothing(service: Service) -> None:
    lines = (ETC / service.configuration).read_text().splitlines()
    assert not [line for line in lines if line and line[0] not in "#["]


def test_the_sample_policy_has_our_rules_as_they_are(
    service: Service, tmp_path: Path
) -> None:
    generated = service.generate_rules(tmp_path / "policy").splitlines()
    active = [line for line in service.lines() if line.startswith('#"')]
    assert active == [line for line in generated if line.startswith('#"')]
    assert len(active) == len(service.policy.list_rules())


def test_the_sample_policy_describes_our_rules(service: Service) -> None:
    sample = " ".join("\n".join(service.lines()).replace("#", "").split())
    for rule in service.policy.list_rules():
        assert str(rule.description) in sample, rule.name


def test_the_sample_policy_changes_nothing(service: Service) -> None:
    assert not [line for line in service.lines() if line and not line.startswith("#")]
