"""The directories of policy files, when the environment names them."""

from pathlib import Path

import pytest

from placement import conf


@pytest.mark.parametrize(
    ("said", "directories"),
    [
        ("policies", ["policies"]),
        ("/etc/placement/policies", ["/etc/placement/policies"]),
        ("one, two", ["one", "two"]),
        ("", []),
    ],
)
def test_the_environment_names_the_directories_of_policy_files(
    monkeypatch: pytest.MonkeyPatch, said: str, directories: list[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("OS_OSLO_POLICY__POLICY_DIRS", said)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "sqlite://")
    file = tmp_path / "placement.conf"
    file.write_text("[oslo_policy]\npolicy_dirs = elsewhere\n")
    config = conf.read([], [str(file)])
    assert config.oslo_policy.policy_dirs == directories
