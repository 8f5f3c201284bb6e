"""Who may do what, by default and by what an operator writes."""

import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from oslo_policy import policy as library

from placement import conf, errors, policy
from placement_foundation import context
from placement_foundation.http import policy as enforcement
from placement_foundation.http.policy import Enforcer
from tests import settings

RULES = [
    rule.name for rule in policy.list_rules() if rule.name.startswith("placement:")
]
LIST = "placement:resource_providers:list"
RESHAPE = "placement:reshaper:reshape"
USAGES = "placement:usages"
PLAIN = [rule for rule in RULES if rule not in (RESHAPE, USAGES)]


def asking(*roles: str, **scope: Any) -> context.RequestContext:
    return context.RequestContext(
        user_id="user", roles=list(roles), overwrite=False, **scope
    )


def admits(
    enforcer: Enforcer,
    caller: context.RequestContext,
    rule: str,
    project: str | None = None,
) -> bool:
    target = {"project_id": project} if project else None
    try:
        enforcer.authorize(rule, caller, target)
    except errors.Forbidden:
        return False
    return True


def enforcer(new_defaults: bool = True) -> Enforcer:
    return policy.make_enforcer(
        settings.make_config({("oslo_policy", "enforce_new_defaults"): new_defaults})
    )


# Who; may do plain operations; may reshape by the new and by the deprecated defaults;
# may see the usages of the own and of another project.
PERSONAS = [
    (("admin",), {"project_id": "own"}, True, False, True, True, True),
    (
        ("admin", "member", "reader"),
        {"project_id": "own"},
        True,
        False,
        True,
        True,
        True,
    ),
    (("ADMIN",), {"project_id": "own"}, True, False, True, True, True),
    (("service",), {"project_id": "own"}, True, True, True, True, True),
    (("member", "reader"), {"project_id": "own"}, False, False, False, True, False),
    (("reader",), {"project_id": "own"}, False, False, False, True, False),
    (("member",), {"project_id": "own"}, False, False, False, False, False),
    (("admin", "service"), {"system_scope": "all"}, *[False] * 5),
    (("admin", "service"), {"domain_id": "default"}, *[False] * 5),
    ((), {"project_id": "own"}, *[False] * 5),
]


@pytest.mark.parametrize(
    ("roles", "scope", "plain", "reshape", "reshape_legacy", "own", "other"), PERSONAS
)
def test_roles_and_scope_decide(
    roles: tuple[str, ...],
    scope: dict[str, str],
    plain: bool,
    reshape: bool,
    reshape_legacy: bool,
    own: bool,
    other: bool,
) -> None:
    caller = asking(*roles, **scope)
    for defaults, may_reshape in ((True, reshape), (False, reshape_legacy)):
        decides = enforcer(defaults)
        assert {admits(decides, caller, rule) for rule in PLAIN} == {plain}
        assert admits(decides, caller, RESHAPE) == may_reshape
        assert admits(decides, caller, USAGES, "own") == own
        assert admits(decides, caller, USAGES, "other") == other


def test_a_refusal_names_the_rule() -> None:
    with pytest.raises(errors.Forbidden) as refused:
        enforcer().authorize(LIST, asking())
    assert str(refused.value) == f"Policy does not allow {LIST} to be performed."


def test_a_refusal_for_the_scope_is_the_rule_alone() -> None:
    with pytest.raises(errors.Forbidden) as refused:
        enforcer().authorize(LIST, asking("admin", system_scope="all"))
    assert str(refused.value) == LIST


@pytest.mark.parametrize("scope", [{"project_id": "own"}, {"system_scope": "all"}])
def test_a_refusal_is_logged_with_the_credentials_but_not_the_token(
    scope: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caller = asking("reader", auth_token="a secret", **scope)
    for level in (logging.INFO, logging.DEBUG):
        caplog.clear()
        with caplog.at_level(level), pytest.raises(errors.Forbidden):
            enforcer().authorize(USAGES, caller, {"project_id": "other"})
        refusals = [each for each in caplog.messages if "policy refuses" in each]
        assert bool(refusals) == (level == logging.DEBUG)
    [refusal] = refusals
    [name] = scope
    for part in (USAGES, "'project_id': 'other'", "['reader']", "'user_id': 'user'"):
        assert part in refusal
    assert f"{name!r}: {scope[name]!r}" in refusal
    assert "a secret" not in caplog.text


class Files:
    """A policy file and directory, and what decides by them."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "policy.yaml"
        self.directory = directory / "policy.d"
        self._clock = time.time() - 1000
        self.overrides = {
            ("oslo_policy", "policy_file"): str(self.file),
            ("oslo_policy", "policy_dirs"): [str(self.directory)],
        }

    def write(self, path: Path, text: str) -> None:
        """Write a file, each time a second later than the one before."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self._clock += 1
        os.utime(path, (self._clock, self._clock))
        os.utime(path.parent, (self._clock, self._clock))

    def enforcer(self) -> Enforcer:
        """Return what decides."""
        return policy.make_enforcer(settings.make_config(self.overrides))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_base_rule_widens_what_refers_to_it(files: Files) -> None:
    files.write(files.file, '"admin_or_service_api": "role:operator"')
    decides = files.enforcer()
    assert {admits(decides, asking("operator"), rule) for rule in PLAIN} == {True}
    assert not admits(decides, asking("operator"), RESHAPE)


def test_overriding_admin_api_changes_nothing(files: Files) -> None:
    files.write(files.file, '"admin_api": "role:operator"')
    assert not admits(files.enforcer(), asking("operator"), LIST)


def test_the_scope_cannot_be_overridden(files: Files) -> None:
    files.write(files.file, f'"{LIST}": "@"')
    decides = files.enforcer()
    assert admits(decides, asking(), LIST)
    assert not admits(decides, asking(system_scope="all"), LIST)


@pytest.mark.parametrize(
    ("check", "role", "outcome"),
    [
        ('[["role:a"], ["role:b"]]', "b", True),
        ('[["role:a", "role:b"]]', "b", False),
        ("[]", "c", True),
        ("", "c", True),
        ("null", "c", True),
    ],
)
def test_a_check_may_be_a_list_or_nothing(
    files: Files, check: str, role: str, outcome: bool
) -> None:
    files.write(files.file, f'"{LIST}": {check}\n"nova:servers": {check}')
    assert admits(files.enforcer(), asking(role), LIST) == outcome


def test_files_of_the_directory_come_after_the_file_in_order(files: Files) -> None:
    files.write(files.file, f'"{LIST}": "role:first"')
    files.write(files.directory / "10.yaml", f'"{LIST}": "role:second"')
    files.write(files.directory / "20.yaml", f'"{LIST}": "role:third"')
    files.write(files.directory / ".30.yaml", f'"{LIST}": "role:hidden"')
    decides = files.enforcer()
    admitted = [
        role
        for role in ("first", "second", "third", "hidden")
        if admits(decides, asking(role), LIST)
    ]
    assert admitted == ["third"]


@pytest.mark.parametrize("place", ["file", "directory"])
def test_a_file_that_is_new_changed_or_removed_counts_at_once(
    files: Files, place: str
) -> None:
    path = files.file if place == "file" else files.directory / "10.yaml"
    decides = files.enforcer()
    for role in ("first", "second"):
        assert not admits(decides, asking(role), LIST)
        files.write(path, f'"{LIST}": "role:{role}"')
        assert admits(decides, asking(role), LIST)
        assert not admits(decides, asking("admin"), LIST)
    assert not admits(decides, asking("first"), LIST)
    path.unlink()
    assert not admits(decides, asking("second"), LIST)
    assert admits(decides, asking("admin"), LIST)


def test_a_new_file_counts_at_once_in_each_place_that_is_searched(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    given = tmp_path / "etc/placement.conf"
    files.write(given, "")
    config = settings.make_config({("oslo_policy", "policy_file"): "new-rules.yaml"})
    config(["--config-file", str(given)], project=conf.PROJECT)
    decides = policy.make_enforcer(config)
    # The last one in which it is searched for first; each comes before the others.
    for number, place in enumerate((".", ".placement", "etc")):
        role = f"role{number}"
        assert not admits(decides, asking(role), LIST)
        path = tmp_path / place / "new-rules.yaml"
        files.write(path, f'"{LIST}": "role:{role}"')
        assert admits(decides, asking(role), LIST)


def test_a_file_that_cannot_be_parsed_stops_the_start(files: Files) -> None:
    files.write(files.file, "]: [")
    with pytest.raises(ValueError, match="expected"):
        files.enforcer()


@pytest.mark.parametrize("place", ["file", "directory"])
def test_a_broken_file_changes_nothing_and_is_reported_once(
    files: Files, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = files.file if place == "file" else files.directory / "10.yaml"
    files.write(broken, f'"{LIST}": "role:first"')
    decides = files.enforcer()
    for count in (1, 2):
        files.write(broken, "]: [" + "[" * count)
        for _ in range(3):
            assert admits(decides, asking("first"), LIST)
            assert not admits(decides, asking("admin"), LIST)
        assert caplog.text.count("The policy cannot be used") == count
    files.write(broken, f'"{LIST}": "role:second"')
    assert admits(decides, asking("second"), LIST)
    assert not admits(decides, asking("first"), LIST)


def test_others_are_served_while_a_changed_file_is_read(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(files.file, f'"{LIST}": "role:first"')
    decides = files.enforcer()
    parse = library.parse_file_contents
    admitted: list[bool] = []

    def parse_slowly(data: str) -> Any:
        with ThreadPoolExecutor(1) as other:
            asked = other.submit(admits, decides, asking("first"), LIST)
            admitted.append(asked.result(timeout=60))
        return parse(data)

    monkeypatch.setattr(library, "parse_file_contents", parse_slowly)
    files.write(files.file, f'"{LIST}": "role:second"')
    assert admits(decides, asking("second"), LIST)
    assert admitted
    assert all(admitted)


def test_a_new_file_is_not_overlooked_while_another_is_read(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(files.file, f'"{LIST}": "role:first"')
    decides = files.enforcer()
    load = enforcement.load

    def load_slowly(*arguments: Any) -> library.Enforcer:
        loaded = load(*arguments)
        if not files.directory.exists():
            files.write(files.directory / "10.yaml", f'"{LIST}": "role:third"')
            with ThreadPoolExecutor(1) as other:
                asked = other.submit(admits, decides, asking("first"), LIST)
                assert asked.result(timeout=60)
        return loaded

    monkeypatch.setattr(enforcement, "load", load_slowly)
    files.write(files.file, f'"{LIST}": "role:second"')
    assert admits(decides, asking("second"), LIST)
    assert admits(decides, asking("third"), LIST)


def test_the_tools_get_an_enforcer_of_their_own() -> None:
    assert set(policy.get_enforcer().registered_rules) == {
        rule.name for rule in policy.list_rules()
    }


@pytest.mark.parametrize("by", ["variable", "argument"])
def test_the_policy_tools_get_the_rules_of_the_service(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "placement.conf"
    file.write_text("[api]\nauth_strategy = noauth2\n")
    (tmp_path / "policy.yaml").write_text(f'"{LIST}": "role:other"\n')
    arguments = ["oslopolicy-policy-generator", "--namespace", "placement"]
    if by == "variable":
        monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(tmp_path))
    else:
        arguments += ["--config-file", str(file)]
    monkeypatch.setattr("sys.argv", arguments)
    assert str(policy.get_enforcer().rules[LIST]) == "role:other"
