# ruff: noqa: E501 -- a table is read line by line
"""Bad files are refused before anything is sent, with file, line and path."""

import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_clients import client
from placement_clients.apply import cli, declaration, yaml12
from placement_clients.apply.yaml12 import Fault

UUID = "5c1f0000-0000-4000-8000-000000000001"
# Of each bad file: what is in it, the line and the path of the fault, and a part of the
# reason. What is not YAML has no paths, and the file as a whole has an empty one.
BAD = [
    ("trees: [", 1, "", "not YAML"),
    ("trees:\n\t- name: a", 2, "", "not YAML"),
    ("# é\n" * 50 + "trees: \x01" + "\n" * 50, 51, "", "not YAML"),
    ("just words", 1, "", "'just words' is not of type 'object'"),
    ("hosts: []", 1, "hosts", "'hosts' is not one of ['trees', 'pattern'"),
    ("trees: []\ntrees: []", 2, "trees", "the key `trees` occurs twice"),
    ("trees: a", 1, "trees", "'a' is not of type 'array'"),
    ("1: []", 1, "", 'a key must be a string: write "1"'),
    ("trees:\n- uuid: " + UUID, 2, "trees[0]", "'name' is a required property"),
    ("trees:\n- name:\n    a: b", 3, "trees[0].name", "is not of type 'string'"),
    ("trees:\n- name: 17", 2, "trees[0].name", "17 is not of type 'string'"),
    (
        f"trees:\n- name: {'a' * 201}",
        2,
        "trees[0].name",
        "is too long",
    ),
    ("trees:\n- name: a\n  name: b", 3, "trees[0].name", "the key `name` occurs twice"),
    ("trees:\n- name: a\n  colour: b", 3, "trees[0].colour", "'colour' is not one of"),
    (
        "- name: a\n- name: a",
        2,
        "[1].name",
        "the name a occurs twice, first at bad.yaml:1",
    ),
    (
        f"- {{name: a, uuid: {UUID.replace('-', '')}}}\n"
        f"- {{name: b, uuid: {UUID.upper()}}}",
        2,
        "[1].uuid",
        "twice",
    ),
    ("- name: a\n  uuid: b", 2, "[0].uuid", "'b' does not match"),
    (
        "- name: a\n  traits: [custom]",
        2,
        "[0].traits[0]",
        "'custom' does not match",
    ),
    (
        "- name: a\n  traits:\n  - CUSTOM_A\n  - CUSTOM_A",
        3,
        "[0].traits",
        "has non-unique elements",
    ),
    (
        "- name: a\n  inventories: {vcpu: 4}",
        2,
        "[0].inventories.vcpu",
        "'vcpu' does not match",
    ),
    (
        "- name: a\n  inventories: {VCPU: 4.5}",
        2,
        "[0].inventories.VCPU",
        "4.5 is not of type 'integer'",
    ),
    (
        "- name: a\n  inventories: {VCPU: 0}",
        2,
        "[0].inventories.VCPU",
        "0 is less than the minimum of 1",
    ),
    (
        f"- name: a\n  inventories: {{VCPU: {'9' * 5000}}}",
        2,
        "[0].inventories.VCPU",
        "is not a number of JSON",
    ),
    (
        "- name: a\n  inventories: {VCPU: {}}",
        2,
        "[0].inventories.VCPU",
        "'total' is a required property",
    ),
    (
        "- name: a\n  inventories:\n    VCPU:\n      total: 4\n      allocation_ratio: .inf",
        5,
        "[0].inventories.VCPU.allocation_ratio",
        "'.inf' is not a number",
    ),
    (
        "- name: a\n  aggregates: [rack-17]",
        2,
        "[0].aggregates[0]",
        "rack-17 is neither a UUID nor one of",
    ),
    ("aggregates:\n  rack-17: rack", 2, "aggregates.rack-17", "'rack' does not match"),
    ("resource_classes:\n- CUSTOM-A", 2, "resource_classes[0]", "'CUSTOM-A' does not"),
    (
        "- &a {name: a, children: [*a]}",
        1,
        "[0].children" * 50 + "[0]",
        "nested too deeply",
    ),
    ("- !!python/object:os.system {name: a}", 1, "[0]", "of the unknown kind"),
    ("- name: a\n  uuid: !secret b", 2, "[0].uuid", "of the unknown kind !secret"),
    ("- name: a{n}\n  range: {}", 2, "[0].range", "should be non-empty"),
    (
        "- name: a{n}\n  range: {n: 5}",
        2,
        "[0].range.n",
        "5 is not of type 'string', 'array'",
    ),
    (
        "- name: a{n}\n  range: {n: 5..1}",
        2,
        "[0].range.n",
        "the range 5..1 does not have 1 to",
    ),
    (
        "- name: a{n}\n  range: {n: 1..999999}",
        2,
        "[0].range.n",
        "does not have 1 to 100000 members",
    ),
    (
        "- name: a{m}\n  range: {n: 1..2}",
        1,
        "[0].name",
        "unknown variable {m}; there are: n",
    ),
    (
        "- name: a{n}\n  range: {n: 1..2}\n  children:\n  - name: b{n}\n"
        "    range: {n: 1..2}",
        5,
        "[0].children[0].range.n",
        "the variable n is in use already",
    ),
    (
        "- name: a{n}\n  range: {n: 1..20000}\n  children:\n  - name: b{n}{m}\n"
        "    range: {m: 1..20000}",
        1,
        "[0].name",
        "with this, there are more than 2000000 providers",
    ),
    (
        "\n".join(
            f"- {{name: 'a{{n}}-{k}', range: {{n: 1..99999}}}}" for k in range(21)
        ),
        21,
        "[20].name",
        "with this, there are more than 2000000 providers",
    ),
    ("pattern: {name: a}", 1, "pattern", "'range' is a required property"),
    ("- name: a\n---\n- name: a", 3, "document 2[0].name", "the name a occurs twice"),
    ("\n- " + "[" * 5000 + "]" * 5000, 1, "", "nested too deeply"),
    (
        "- name: a\n  inventories: {'CUSTOM_{n}': 1, CUSTOM_1: 2}\n  range: {n: 1..1}",
        2,
        "[0].inventories.CUSTOM_1",
        "the key `CUSTOM_1` occurs twice",
    ),
    (
        f"aggregates: {{x: {UUID}}}\n---\naggregates: {{x: {UUID[:-1]}2}}",
        3,
        "document 2.aggregates.x",
        "x of the aggregates is two",
    ),
    (
        "- name: a\n  inventories: {VCPU: !!int x}",
        2,
        "[0].inventories.VCPU",
        "'x' is not a number",
    ),
    *(
        (f"- name: a\n  inventories: {{VCPU: {value}}}", 2, "[0].inventories.VCPU", "")
        for value in ("!!bool maybe", '!!int ""', '!!float ""')
    ),
    ("trees: []\n# \x00", 2, "", "not YAML: the character 0x0"),
    ("- {<<: {name: a}}", 1, "[0].<<", "merge keys (`<<`) are not in YAML 1.2: write"),
    (
        "- name: 'a{n}'\n  range: {n: [a, a]}",
        2,
        "[0].range.n",
        "has non-unique elements",
    ),
]


@pytest.mark.parametrize(("text", "line", "path", "reason"), BAD)
def test_a_bad_file_is_refused_before_anything_is_sent(
    text: str,
    line: int,
    path: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    sent: list[Any] = []
    monkeypatch.setattr(
        client.Client, "request", lambda *given, **_: sent.append(given)
    )
    for command in (["plan"], ["--yes"]):
        status = cli.main([*command, str(file), "--url", "http://127.0.0.1:9"])
        complaint = capsys.readouterr().err
        where = f"{file}:{line}: {path}: " if path else f"{file}:{line}: "
        assert status == cli.ERROR
        assert complaint.startswith(f"placement-apply: {where}")
        found = complaint.removeprefix(f"placement-apply: {where}")
        assert reason.replace("bad.yaml", str(file)) in found
        assert path or found.startswith(reason)
        assert len(found.splitlines()) == 1
    assert not sent


def test_a_file_that_is_not_there_or_not_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", str(tmp_path / "none.yaml")]) == cli.ERROR
    assert "No such file or directory" in capsys.readouterr().err
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"trees: []\n# \xff")
    assert cli.main(["plan", str(binary)]) == cli.ERROR
    assert f"{binary}:2: this is not UTF-8" in capsys.readouterr().err


def load(text: str) -> declaration.Declaration:
    return declaration.load([("fleet.yaml", text)])


def test_the_file_of_the_contract() -> None:
    declared = load(
        """
        trees:
        - name: compute-1
          aggregates: [rack-17]
          traits: [CUSTOM_RACK_17]
          inventories:
            CUSTOM_FPGA: {total: 4}
            VCPU: null
          children:
          - name: compute-1_gpu0
            inventories: {CUSTOM_GPU: 1}
            traits: [CUSTOM_NVLINK]
        aggregates: {rack-17: 5c1f0000-0000-4000-8000-000000000001}
        traits: [CUSTOM_RACK_17]
        resource_classes: [CUSTOM_FPGA]
        """
    )
    assert declared.trees == [
        {
            "name": "compute-1",
            "inventories": {"CUSTOM_FPGA": {"total": 4}, "VCPU": None},
            "traits": ["CUSTOM_RACK_17"],
            "aggregates": ["rack-17"],
            "children": [
                {
                    "name": "compute-1_gpu0",
                    "inventories": {"CUSTOM_GPU": 1},
                    "traits": ["CUSTOM_NVLINK"],
                }
            ],
        }
    ]
    assert declared.others["traits"] == ["CUSTOM_RACK_17"]
    assert declared.others["resource_classes"] == ["CUSTOM_FPGA"]


def test_empty_members_are_as_if_left_out() -> None:
    empty = ["uuid", "inventories", "traits", "aggregates", "children"]
    text = "".join(f"  {name}:\n" for name in empty)
    assert load(f"- name: a\n{text}").trees == [{"name": "a"}]


def names(text: str) -> list[str]:
    return [tree["name"] for tree in load(text).trees]


def test_ranges_stand_for_many_trees() -> None:
    assert names("- {name: 'c-{n}', range: {n: 1..3}}") == ["c-1", "c-2", "c-3"]
    assert names("- {name: 'c-{n}', range: {n: 08..10}}") == ["c-08", "c-09", "c-10"]
    assert names("- {name: 'c-{r}{n}', range: {r: [a, b], n: 1..2}}") == [
        *("c-a1", "c-a2", "c-b1", "c-b2"),
    ]
    assert names("pattern: {name: 'c-{n}', range: {n: 7..7}}") == ["c-7"]
    [tree] = load(
        """
        - name: rack{n}
          range: {n: 4..4}
          traits: ["CUSTOM_RACK_{n}"]
          inventories: {"CUSTOM_SLOT_{n}": 3}
          children: [{name: "rack{n}_{m}", range: {m: 0..1}}]
        """
    ).trees
    assert tree["traits"] == ["CUSTOM_RACK_4"]
    assert tree["inventories"] == {"CUSTOM_SLOT_4": 3}
    assert [child["name"] for child in tree["children"]] == ["rack4_0", "rack4_1"]
    # Without a range, braces are what they are.
    assert names("- name: 'c-{n}'") == ["c-{n}"]


def test_plain_words_mean_what_yaml_1_2_says() -> None:
    assert names("[{name: yes}, {name: no}, {name: on}, {name: 1:30}]") == [
        *("yes", "no", "on", "1:30"),
    ]
    assert names("- name: 2026-11-22") == ["2026-11-22"]
    [tree] = load("- {name: a, inventories: {A: 010, B: 0o10, C: 0x10}}").trees
    assert tree["inventories"] == {"A": 10, "B": 8, "C": 16}
    with pytest.raises(Fault, match="merge keys"):
        load("- {<<: {name: a}}")


def test_json_with_tabs_and_characters_of_all_kinds() -> None:
    assert names('{\n\t"trees": [{"name": "\\ud83d\\ude00 \\/ \\u00e9"}]}') == [
        "😀 / é"
    ]
    with pytest.raises(Fault, match="not valid Unicode"):
        load('[{"name": "\\ud83d"}]')


def test_several_documents_and_files_are_one_declaration() -> None:
    declared = declaration.load(
        [
            ("a.yaml", "- name: a\n---\ntrees: [{name: b, aggregates: [x]}]\n---\n"),
            ("b.yaml", f"aggregates: {{x: {UUID}}}"),
        ]
    )
    assert [tree["name"] for tree in declared.trees] == ["a", "b"]
    assert declared.trees[1]["aggregates"] == ["x"]
    with pytest.raises(Fault, match=re.escape("b.yaml:1: [0].name: the name a")):
        declaration.load([("a.yaml", "- name: a"), ("b.yaml", "- name: a")])


def test_names_of_all_files_are_joined() -> None:
    declared = declaration.load(
        [
            ("a.yaml", f"aggregates: {{x: {UUID}}}\nprojects: {{web: '17'}}"),
            ("b.yaml", "projects: {web: '17', Größe: 9f31}"),
        ]
    )
    assert declared.others["aggregates"] == {"x": UUID}
    assert declared.others["projects"] == {"web": "17", "Größe": "9f31"}
    with pytest.raises(Fault, match=re.escape("b.yaml:1: projects.web: web of")):
        declaration.load(
            [("a", "projects: {web: a}"), ("b.yaml", "projects: {web: b}")]
        )
    with pytest.raises(Fault, match="should be non-empty"):
        load("projects: {web: ''}")


@pytest.mark.parametrize("levels", [6, 8, 40])
@pytest.mark.parametrize("separator", ["\n", "\n---\n"])
def test_laughs_are_counted_without_laughing(levels: int, separator: str) -> None:
    lines = ["- &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    text = "\n".join(lines)
    began = time.monotonic()
    with pytest.raises(Fault, match="aliases stand for more than 200000 values"):
        load(f"[]{separator}{text}" if separator != "\n" else text)
    assert time.monotonic() - began < 2


def test_many_values_without_aliases_are_read() -> None:
    text = "".join(f"- {{name: h{n}, traits: [A, B, C]}}\n" for n in range(40_000))
    assert len(yaml12.compose(text, "fleet.yaml")[0].value) == 40_000


def test_aliases_are_values() -> None:
    [one, other] = load(
        "- {name: a, traits: &gpu [CUSTOM_GPU]}\n- {name: b, traits: *gpu}"
    ).trees
    assert one["traits"] == other["traits"] == ["CUSTOM_GPU"]


NOVA = """
meta:
  schema_version: '1.0'
providers:
- identification:
    name: compute-1
  inventories:
    additional:
    - CUSTOM_FPGA: {total: 4, reserved: 1}
    - CUSTOM_LICENCE: {total: 22}
  traits:
    additional: [CUSTOM_RACK_17]
"""


def test_a_provider_yaml_of_nova_is_read() -> None:
    assert load(NOVA).trees == [
        {
            "name": "compute-1",
            "inventories": {
                "CUSTOM_FPGA": {"total": 4, "reserved": 1},
                "CUSTOM_LICENCE": {"total": 22},
            },
            "traits": ["CUSTOM_RACK_17"],
        }
    ]
    assert load("meta: {schema_version: '1.0'}").trees == []
    [tree] = load(
        "meta: {}\nproviders:\n- identification: {name: a}\n"
        "  inventories: {additional: [null]}\n  traits:\n"
    ).trees
    assert tree == {"name": "a"}
    with pytest.raises(Fault, match=re.escape("'uuid' is not one of ['name']")):
        load(NOVA.replace("name: compute-1", "uuid: $COMPUTE_NODE"))
    with pytest.raises(Fault, match="'trees' is not one of"):
        load(NOVA + "trees: []")


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_what_is_written_is_read_again(name: str) -> None:
    assert names(yaml12.dump({"trees": [{"name": name}]})) == [name]


@pytest.mark.parametrize("name", ["yes", "No", "ON", "off", "y", "n"])
def test_words_that_are_bools_in_yaml_1_1_are_quoted(name: str) -> None:
    assert yaml12.dump({"name": name}) == f'name: "{name}"\n'


def test_garbage_is_refused_without_a_traceback() -> None:
    rng, complaints = random.Random(29), set()
    text = yaml12.dump([{"name": "a", "traits": ["B"], "inventories": {"A": 1}}])
    for _ in range(300):
        at = rng.randrange(len(text))
        garbled = (
            text[:at] + rng.choice("{}[]:,-&*!|>'\"%@`\n\t #\\0é") + text[at + 1 :]
        )
        try:
            load(garbled)
        except Fault as fault:
            complaints.add(str(fault).rpartition(": ")[2])
    assert len(complaints) > 5
