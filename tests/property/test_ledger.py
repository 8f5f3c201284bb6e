"""The service keeps the same ledger as a program that is obviously right."""

import dataclasses
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from placement import app
from tests import backends, settings
from tests.client import Answer, Client
from tests.property.ledger import (
    CLASSES,
    Amounts,
    Claim,
    Inventory,
    Ledger,
    Provider,
    Refused,
    Shape,
)

PROVIDERS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]
CONSUMERS = [f"11111111-0000-4000-8000-00000000000{number}" for number in range(4)]
NOBODY = "22222222-0000-4000-8000-000000000000"

UNGUARDED, GUARDED, TYPED = "1.27", "1.28", "1.38"

sizes = st.builds(
    Inventory,
    total=st.integers(5, 20),
    reserved=st.integers(0, 5),
    min_unit=st.sampled_from([1, 1, 2]),
    max_unit=st.sampled_from([4, 20, 20]),
    step_size=st.sampled_from([1, 1, 2]),
    allocation_ratio=st.sampled_from([0.57, 1.0, 1.5]),
)
inventories = st.dictionaries(st.sampled_from(CLASSES), sizes, max_size=3)
# From time to time an unknown provider or class.
amounts = st.dictionaries(
    st.sampled_from([*PROVIDERS * 3, NOBODY]),
    st.dictionaries(
        st.sampled_from([*CLASSES * 3, "CUSTOM_NOTHING"]),
        st.integers(1, 8),
        min_size=1,
        max_size=2,
    ),
    max_size=2,
)
# How far the generation in a request is from the right one.
errors = st.sampled_from([0, 0, 0, 0, 1, -1, None])


@dataclasses.dataclass(frozen=True)
class Wish:
    """What to ask for one consumer, as long as generations are not known yet."""

    amounts: Amounts
    project: str
    user: str
    type: str
    error: int | None


wishes = st.builds(
    Wish,
    amounts=amounts,
    project=st.sampled_from(["blue", "red"]),
    user=st.sampled_from(["seven", "eight"]),
    type=st.sampled_from(["INSTANCE", "MIGRATION"]),
    error=errors,
)
some_consumers = st.lists(st.sampled_from(CONSUMERS), min_size=1, unique=True)
SENSIBLE = Wish({}, "blue", "seven", "INSTANCE", error=0)
several = st.dictionaries(st.sampled_from(CONSUMERS), wishes, min_size=1, max_size=3)


class Comparison(stateful.RuleBasedStateMachine):
    """Ask the service and the model the same, and compare answers and ledgers."""

    template: backends.Template
    directory: Path

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        database = self.stack.enter_context(self.template.fresh(self.directory))
        self.client = Client(app.build(settings.make_config(), database))
        self.ledger = Ledger()
        for uuid in PROVIDERS:
            body = {"uuid": uuid, "name": uuid}
            assert self.client.call("POST", "/resource_providers", body).status == 200
            self.ledger.providers[uuid] = Provider()
        full = Inventory(20, 0, 1, 20, 1, 1.0)
        for uuid in PROVIDERS[:2]:
            self.set_inventories(uuid, dict.fromkeys(CLASSES, full))

    def teardown(self) -> None:
        self.stack.close()

    @stateful.rule(provider=st.sampled_from(PROVIDERS), wanted=inventories)
    def set_inventories(self, provider: str, wanted: dict[str, Inventory]) -> None:
        body = self.shape(self.ledger.providers[provider].generation, wanted)
        path = f"/resource_providers/{provider}/inventories"
        answer = self.client.call("PUT", path, body)
        self.compare(answer, 200, self.ledger.set_inventories, provider, wanted)

    @stateful.rule(
        consumer=st.sampled_from(CONSUMERS),
        wish=wishes,
        version=st.sampled_from([UNGUARDED, GUARDED, TYPED]),
    )
    def put(self, consumer: str, wish: Wish, version: str) -> None:
        if version == UNGUARDED and not wish.amounts:
            return  # Not a request of that version.
        claim = self.claim(consumer, wish, version)
        path = f"/allocations/{consumer}"
        answer = self.client.call("PUT", path, self.body(claim), version)
        self.compare(answer, 204, self.ledger.write, [claim])

    @stateful.rule(wanted=several, version=st.sampled_from([UNGUARDED, GUARDED, TYPED]))
    def post(self, wanted: dict[str, Wish], version: str) -> None:
        claims = [self.claim(*each, version) for each in wanted.items()]
        self.post_claims(claims, version)

    @stateful.rule(data=st.data())
    def claim_what_may_be_there(self, data: st.DataObject) -> None:
        claims = [
            self.claim(uuid, self.sensible(data), TYPED)
            for uuid in data.draw(some_consumers)
        ]
        self.post_claims(claims, TYPED)

    @stateful.precondition(lambda self: self.ledger.consumers)
    @stateful.rule(data=st.data())
    def hand_over(self, data: st.DataObject) -> None:
        giver = data.draw(st.sampled_from(sorted(self.ledger.consumers)))
        taker = data.draw(
            st.sampled_from([uuid for uuid in CONSUMERS if uuid != giver])
        )
        given = self.ledger.consumers[giver].amounts
        wishes = {giver: SENSIBLE, taker: dataclasses.replace(SENSIBLE, amounts=given)}
        self.post_claims([self.claim(*each, TYPED) for each in wishes.items()], TYPED)

    @stateful.rule(provider=st.sampled_from(PROVIDERS), data=st.data())
    def resize(self, provider: str, data: st.DataObject) -> None:
        """Change inventories, even below what is used, and remove none."""
        known = self.ledger.providers[provider].inventories
        self.set_inventories(provider, {name: data.draw(sizes) for name in known})

    @stateful.rule(consumer=st.sampled_from(CONSUMERS))
    def delete(self, consumer: str) -> None:
        answer = self.client.call("DELETE", f"/allocations/{consumer}")
        self.compare(answer, 204, self.ledger.delete, consumer)

    @stateful.rule(
        wanted=st.dictionaries(
            st.sampled_from(PROVIDERS),
            st.tuples(inventories, st.sampled_from([0, 0, 0, 0, 1])),
            min_size=1,
            max_size=2,
        ),
        wished=st.one_of(st.just({}), several),
    )
    def reshape(
        self,
        wanted: dict[str, tuple[dict[str, Inventory], int]],
        wished: dict[str, Wish],
    ) -> None:
        shapes = {
            uuid: Shape(self.ledger.providers[uuid].generation + error, each)
            for uuid, (each, error) in wanted.items()
        }
        claims = [self.claim(*each, TYPED) for each in wished.items()]
        self.post_shapes(shapes, claims)

    @stateful.rule()
    def move_everything(self) -> None:
        """Reshape as operators do: allocations move along to another provider."""
        home, other = PROVIDERS[:2]
        moving = self.ledger.providers[home].inventories
        claims = [
            Claim(
                uuid,
                self.moved(consumer.amounts, home, other),
                consumer.project,
                consumer.user,
                consumer.type or "INSTANCE",
                guarded=True,
                generation=consumer.generation,
            )
            for uuid, consumer in self.ledger.consumers.items()
        ]
        there = self.ledger.providers[other].inventories
        shapes = {
            home: Shape(self.ledger.providers[home].generation, {}),
            other: Shape(self.ledger.providers[other].generation, {**there, **moving}),
        }
        self.post_shapes(shapes, claims)

    def post_claims(self, claims: list[Claim], version: str) -> None:
        body = {claim.consumer: self.body(claim) for claim in claims}
        answer = self.client.call("POST", "/allocations", body, version)
        self.compare(answer, 204, self.ledger.write, claims)

    def post_shapes(self, shapes: dict[str, Shape], claims: list[Claim]) -> None:
        body = {
            "inventories": {
                uuid: self.shape(shape.generation, shape.inventories)
                for uuid, shape in shapes.items()
            },
            "allocations": {claim.consumer: self.body(claim) for claim in claims},
        }
        answer = self.client.call("POST", "/reshaper", body)
        self.compare(answer, 204, self.ledger.reshape, shapes, claims)

    @stateful.invariant()
    def ledgers_agree(self) -> None:
        for uuid, provider in self.ledger.providers.items():
            path = f"/resource_providers/{uuid}"
            shown = self.client.get(f"{path}/inventories")
            assert shown["resource_provider_generation"] == provider.generation
            assert shown["inventories"] == {
                name: pytest.approx(dataclasses.asdict(each))
                for name, each in provider.inventories.items()
            }
            assert self.client.usages(uuid) == {
                name: self.ledger.used(uuid, name) for name in provider.inventories
            }
            assert self.client.get(f"{path}/allocations")["allocations"] == {
                each: {
                    "resources": consumer.amounts[uuid],
                    "consumer_generation": consumer.generation,
                }
                for each, consumer in self.ledger.consumers.items()
                if uuid in consumer.amounts
            }
        for uuid in CONSUMERS:
            assert self.client.get(f"/allocations/{uuid}") == self.shown(uuid)

    def shown(self, uuid: str) -> Any:
        if uuid not in self.ledger.consumers:
            return {"allocations": {}}
        consumer = self.ledger.consumers[uuid]
        return {
            "allocations": {
                each: {
                    "resources": resources,
                    "generation": self.ledger.providers[each].generation,
                }
                for each, resources in consumer.amounts.items()
            },
            "project_id": consumer.project,
            "user_id": consumer.user,
            "consumer_generation": consumer.generation,
            "consumer_type": consumer.type or "unknown",
        }

    def compare(self, answer: Answer, success: int, write: Any, *given: Any) -> None:
        refusal = None
        try:
            write(*given)
        except Refused as exc:
            refusal = exc
        if refusal is None:
            assert answer.status == success, answer
        else:
            assert answer.status == refusal.status, answer
            assert refusal.phrase in answer.detail

    def sensible(self, data: st.DataObject) -> Wish:
        """Return a wish for what some providers have inventories of."""
        amounts: dict[str, dict[str, int]] = {}
        for uuid, provider in self.ledger.providers.items():
            names = sorted(provider.inventories)
            if names and data.draw(st.sampled_from([True, False])):
                few = st.dictionaries(
                    st.sampled_from(names), st.integers(1, 8), min_size=1
                )
                amounts[uuid] = data.draw(few)
        return dataclasses.replace(SENSIBLE, amounts=amounts)

    def claim(self, consumer: str, wish: Wish, version: str) -> Claim:
        known = self.ledger.consumers.get(consumer)
        generation = known.generation if known else None
        if wish.error is None:
            generation = None
        elif wish.error:
            generation = (generation or 0) + wish.error
        return Claim(
            consumer,
            wish.amounts,
            wish.project,
            wish.user,
            wish.type if version == TYPED else None,
            guarded=version != UNGUARDED,
            generation=generation,
        )

    @staticmethod
    def moved(amounts: Any, home: str, other: str) -> dict[str, dict[str, int]]:
        moved = {uuid: dict(each) for uuid, each in amounts.items() if uuid != home}
        for name, amount in amounts.get(home, {}).items():
            place = moved.setdefault(other, {})
            place[name] = place.get(name, 0) + amount
        return moved

    @staticmethod
    def shape(generation: int, wanted: Any) -> dict[str, Any]:
        return {
            "resource_provider_generation": generation,
            "inventories": {
                name: dataclasses.asdict(each) for name, each in wanted.items()
            },
        }

    @staticmethod
    def body(claim: Claim) -> dict[str, Any]:
        body: dict[str, Any] = {
            "allocations": {
                uuid: {"resources": resources}
                for uuid, resources in claim.amounts.items()
            },
            "project_id": claim.project,
            "user_id": claim.user,
        }
        if claim.guarded:
            body["consumer_generation"] = claim.generation
        if claim.type:
            body["consumer_type"] = claim.type
        return body


def test_the_service_keeps_the_same_ledger_as_the_model(
    template: backends.Template, tmp_path: Path
) -> None:
    Comparison.template, Comparison.directory = template, tmp_path
    stateful.run_state_machine_as_test(
        Comparison,
        settings=hypothesis.settings(max_examples=15, stateful_step_count=25),
    )
