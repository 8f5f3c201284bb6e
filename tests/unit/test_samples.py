"""The samples under etc/ are what the code would generate: run ``tox -e samples``."""

from pathlib import Path

import pytest
from oslo_config import generator as config_generator
from oslo_policy import generator as policy_generator

from placement import conf, policy

ETC = Path(__file__).parents[2] / "etc"
OURS = ["api", "placement", "placement_database", "workarounds"]


def sections(text: str) -> dict[str, str]:
    """Return the sections of a configuration file, keyed by name."""
    found = {}
    for section in ("\n" + text).split("\n[")[1:]:
        name, _, rest = section.partition("]\n")
        found[name] = rest.strip()
    return found


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    target = tmp_path_factory.mktemp("samples") / "placement.conf"
    source = ETC / "placement-config-generator.conf"
    config_generator.main(["--config-file", str(source), "--output-file", str(target)])
    return sections(target.read_text())


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    target = tmp_path_factory.mktemp("samples") / "policy.yaml"
    source = ETC / "placement-policy-generator.conf"
    policy_generator.generate_sample(
        ["--config-file", str(source), "--output-file", str(target)]
    )
    return target.read_text().splitlines()


# The sections of libraries change with their releases.
@pytest.mark.parametrize("name", OURS)
def test_the_sample_configuration_has_our_options_as_they_are(
    configuration: dict[str, str], name: str
) -> None:
    sample = sections((ETC / "placement.conf.sample").read_text())
    assert sample[name] == configuration[name]


def test_the_sample_configuration_has_all_groups() -> None:
    sample = sections((ETC / "placement.conf.sample").read_text())
    groups = {str(group) for group, _ in conf.list_options()}
    assert set(sample) == {"DEFAULT", *groups}


def test_the_sample_configuration_has_our_defaults_for_options_of_libraries() -> None:
    sample = sections((ETC / "placement.conf.sample").read_text())
    assert "routes=INFO" in sample["DEFAULT"]
    assert "OpenStack-API-Version" in sample["cors"]


def test_the_sample_configuration_changes_nothing() -> None:
    lines = (ETC / "placement.conf.sample").read_text().splitlines()
    assert not [line for line in lines if line and line[0] not in "#["]


def test_the_sample_policy_has_our_rules_as_they_are(rules: list[str]) -> None:
    sample = (ETC / "policy.yaml.sample").read_text().splitlines()
    active = [line for line in sample if line.startswith('#"')]
    assert active == [line for line in rules if line.startswith('#"')]
    assert len(active) == len(policy.list_rules())


def test_the_sample_policy_describes_our_rules() -> None:
    sample = " ".join((ETC / "policy.yaml.sample").read_text().replace("#", "").split())
    for rule in policy.list_rules():
        assert str(rule.description) in sample, rule.name


def test_the_sample_policy_changes_nothing() -> None:
    lines = (ETC / "policy.yaml.sample").read_text().splitlines()
    assert not [line for line in lines if line and not line.startswith("#")]
