"""Questions about small clouds, asked over HTTP and answered as written down."""

import dataclasses
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import os_resource_classes
import pytest

from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

EXAMPLES = Path(__file__).with_name("allocation_candidate_examples.txt")
NAMESPACE = uuid.UUID("5d1a4e3c-6f2b-4a77-9c11-0d8e7a6b5c4d")
SHARING = "MISC_SHARES_VIA_AGGREGATE"
LATEST = "1.39"

# The allocations: (provider, class, amount). The mappings: (suffix, providers).
Taken = frozenset[tuple[str, str, int]]
Serving = frozenset[tuple[str, frozenset[str]]] | None


@dataclasses.dataclass(frozen=True)
class Question:
    """A question and its expected answer; only the status if it is an error."""

    query: str
    version: str
    status: int
    candidates: Counter[tuple[Taken, Serving]]
    limited: bool
    summaries: dict[str, dict[str, tuple[int, int]]] | None


@dataclasses.dataclass(frozen=True)
class Example:
    title: str
    cloud: str
    questions: list[Question]


def load_examples() -> Iterator[Example]:
    for block in re.split(r"(?m)^== ", EXAMPLES.read_text())[1:]:
        title, cloud, *lines = block.rstrip().splitlines()
        asked: list[list[str]] = []
        for line in lines:
            if line.startswith(" "):
                asked[-1].append(line.strip())
            else:
                asked.append([line])
        yield Example(title, cloud.strip(), [parse_question(*each) for each in asked])


def parse_question(asked: str, *lines: str) -> Question:
    match = re.fullmatch(r"(?:\[(1\.\d+)\] )?(\S+)(?: +#.*)?", asked)
    assert match, asked
    version, query = match.groups()
    status, summaries = 200, None
    candidates: Counter[tuple[Taken, Serving]] = Counter()
    for line in lines:
        if line.startswith("-> HTTP "):
            status = int(line.removeprefix("-> HTTP "))
        elif line.startswith("summaries: "):
            summaries = parse_summaries(line.removeprefix("summaries: "))
        elif line not in ("none", "one of"):
            candidates[parse_candidate(line)] += 1
    return Question(
        query, version or LATEST, status, candidates, "one of" in lines, summaries
    )


def parse_candidate(line: str) -> tuple[Taken, Serving]:
    amounts, _, mappings = line.partition("   ")
    taken = frozenset(
        (provider, resource_class(name), int(amount))
        for provider, resources in re.findall(r"(\w+)\(([^)]*)\)", amounts)
        for name, amount in (each.split(":") for each in resources.split(","))
    )
    if not mappings:
        return taken, None
    serving = re.findall(r'(?:""|(\w+)):(\w+)', mappings)
    return taken, frozenset((suffix, frozenset([user])) for suffix, user in serving)


def parse_summaries(text: str) -> dict[str, dict[str, tuple[int, int]]]:
    return {
        provider: {
            resource_class(name): (int(used), int(capacity))
            for name, used, capacity in re.findall(r"(\w+) (\d+)/(\d+)", resources)
        }
        for provider, resources in re.findall(r"(\w+)\{([^}]*)\}", text)
    }


def resource_class(name: str) -> str:
    return name if name in os_resource_classes.STANDARDS else f"CUSTOM_{name}"


def trait(name: str) -> str:
    return SHARING if name == "SHARE" else f"CUSTOM_{name}"


def uuid_of(name: str) -> str:
    """Return the UUID of a provider or, by its capital letter, of an aggregate."""
    return str(uuid.uuid5(NAMESPACE, name))


class Cloud:
    """A cloud in the notation of the examples, built through the API."""

    def __init__(self, client: Client, notation: str) -> None:
        self._client = client
        self.names: dict[str, str] = {}
        for provider in notation.split(" | "):
            self._build(*provider.split())

    def _build(self, name: str, *things: str) -> None:
        name, _, parent = name.partition("<")
        self.names[uuid_of(name)] = name
        body: Any = {
            "uuid": uuid_of(name),
            # Names that differ by case only are equal to MariaDB.
            "name": uuid_of(name),
            "parent_provider_uuid": uuid_of(parent) if parent else None,
        }
        self._do("POST", "/resource_providers", body)
        path = f"/resource_providers/{uuid_of(name)}"
        inventories, used = self._inventories(things)
        body = {"resource_provider_generation": 0, "inventories": inventories}
        self._do("PUT", f"{path}/inventories", body)
        traits = [trait(each[1:]) for each in things if each.startswith("+")]
        for each in traits:
            if each != SHARING:
                self._do("PUT", f"/traits/{each}")
        body = {"resource_provider_generation": 1, "traits": traits}
        self._do("PUT", f"{path}/traits", body)
        body = {
            "resource_provider_generation": self._client.generation(uuid_of(name)),
            "aggregates": [uuid_of(each) for each in things if each.startswith("@")],
        }
        self._do("PUT", f"{path}/aggregates", body)
        for resource, amount in used.items():
            taken = {uuid_of(name): {resource: amount}}
            assert self._client.claim(str(uuid.uuid4()), taken).status == 204

    def _inventories(self, things: tuple[str, ...]) -> tuple[Any, dict[str, int]]:
        inventories: dict[str, dict[str, float]] = {}
        used = {}
        for each in things:
            if each[0] in "@+":
                continue
            name, total, *options = each.split(":")
            name = resource_class(name)
            if name.startswith("CUSTOM_"):
                self._do("PUT", f"/resource_classes/{name}")
            inventories[name] = {"total": int(total)}
            for option in options:
                key, value = option.split("=")
                if key == "used":
                    used[name] = int(value)
                else:
                    number = float(value) if "." in value else int(value)
                    inventories[name][key] = number
        return inventories, used

    def _do(self, method: str, path: str, body: Any = None) -> None:
        answer = self._client.call(method, path, body)
        assert answer.status < 300, (method, path, body, answer)

    def path(self, query: str) -> str:
        """Return where to ask a question, with the names that the API knows."""
        query = re.sub(r"(?<=[=,])([A-Z_]+)(?=:\d)", _class_of, query)
        query = re.sub(r"(?<=required)(\w*=)([^&]*)", _traits_of, query)
        query = re.sub(r"(?<=member_of)(\w*=)([^&]*)", _aggregates_of, query)
        query = re.sub(r"(in_tree\w*=)(\w+)", _tree_of, query)
        return f"/allocation_candidates?{query}"


def _class_of(match: re.Match[str]) -> str:
    return resource_class(match[1])


def _traits_of(match: re.Match[str]) -> str:
    return match[1] + re.sub(r"\b(?!in:)\w+", lambda name: trait(name[0]), match[2])


def _aggregates_of(match: re.Match[str]) -> str:
    names = re.sub(r"\b(?!in:)\w+", lambda name: uuid_of(f"@{name[0]}"), match[2])
    return match[1] + names


def _tree_of(match: re.Match[str]) -> str:
    return match[1] + uuid_of(match[2])


@pytest.mark.parametrize(
    "example", list(load_examples()), ids=lambda example: example.title.split(".")[0]
)
def test_the_example_is_answered_as_written(
    example: Example, application: "WSGIApplication"
) -> None:
    client = Client(application)
    cloud = Cloud(client, example.cloud)
    for question in example.questions:
        answer = client.call("GET", cloud.path(question.query), None, question.version)
        assert answer.status == question.status, (question, answer)
        if question.status == 200:
            check(question, answer.document, cloud.names)


def check(question: Question, document: Any, names: dict[str, str]) -> None:
    found = Counter(
        read_candidate(candidate, names)
        for candidate in document["allocation_requests"]
    )
    if any(serving is None for _, serving in question.candidates):
        taken: Counter[tuple[Taken, Serving]] = Counter()
        for (each, _), count in found.items():
            taken[each, None] += count
        found = taken
    if question.limited:
        assert found.total() == 1, question
        assert found <= question.candidates, question
        return
    assert found == question.candidates, question
    if question.summaries is not None:
        summaries = {
            names[provider]: {
                name: (resource["used"], resource["capacity"])
                for name, resource in summary["resources"].items()
            }
            for provider, summary in document["provider_summaries"].items()
        }
        assert summaries == question.summaries, question


def read_candidate(candidate: Any, names: dict[str, str]) -> tuple[Taken, Serving]:
    taken = frozenset(
        (names[provider], name, amount)
        for provider, allocation in candidate["allocations"].items()
        for name, amount in allocation["resources"].items()
    )
    if "mappings" not in candidate:
        return taken, None
    return taken, frozenset(
        (suffix, frozenset(names[provider] for provider in serving))
        for suffix, serving in candidate["mappings"].items()
    )
