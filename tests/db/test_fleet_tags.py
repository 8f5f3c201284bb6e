"""A caller that has the fleet gets 304 only if the fleet is the same."""

import dataclasses
import gzip
import json
import math
import random
from typing import Any

import webob

from placement.db import models
from placement.forest import cache
from placement.objects.journal import filing, tidying
from tests.db.test_kept_forest import fill
from tests.instances import Backup, Instance, Instances
from tests.property.cloud import Writer
from tests.property.foreign import ForeignWriter

FLEET = "/ledger/v1/fleet"
EVERYTHING = f"{FLEET}?fields=inventories,usages,traits,aggregates,consumers,parent"
QUESTIONS = (
    FLEET,
    EVERYTHING,
    f"{FLEET}?fields=allocations",
    f"{FLEET}?fields=consumer_count",
    f"{FLEET}?resources=VCPU:1&fields=usages",
    f"{FLEET}?required=!CUSTOM_T1",
)
LINES = "application/x-ndjson"


def get(instance: Instance, question: str, **headers: str) -> webob.Response:
    response = instance.client.send("GET", question, **headers)
    # Until it is read, a heavy answer occupies a thread.
    assert response.body is not None
    return response


def content_of(response: webob.Response) -> Any:
    """Return what an answer says, but for the moment at which it was read."""
    body = response.body
    if response.content_encoding:
        body = gzip.decompress(body)
    if response.content_type == LINES:
        return body
    document = json.loads(body)
    document.pop("moment", None)
    return json.dumps(document)


@dataclasses.dataclass
class Known:
    """An answer that a caller has."""

    tag: str
    content: Any


class Caller:
    """Asks the same questions again and again, and keeps the answers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.known: dict[tuple[str, str, str], list[Known]] = {}
        self.unchanged = 0
        self.changed = 0

    def check(self, instance: Instance, question: str) -> None:
        """Ask with all tags that are known, and compare with a full answer."""
        form = self.rng.choice(["application/json", LINES])
        packing = self.rng.choice(["gzip", "identity"])
        asked = {"accept": form, "accept_encoding": packing}
        known = self.known.setdefault((question, form, packing), [])
        full = get(instance, question, **asked)
        if full.status_int != 200:
            # A name in the query is gone: no tag may hide that.
            for each in known:
                again = get(instance, question, if_none_match=f'"{each.tag}"', **asked)
                assert again.status_int == full.status_int
            return
        for each in known:
            again = get(instance, question, if_none_match=f'"{each.tag}"', **asked)
            assert again.status_int in (200, 304)
            if again.status_int == 304:
                self.unchanged += 1
                assert again.body == b""
                assert content_of(full) == each.content, question
            else:
                self.changed += 1
        if full.etag and full.etag not in [each.tag for each in known]:
            known.append(Known(full.etag, content_of(full)))


def expect_unchanged(caller: Caller, instance: Instance) -> None:
    """Expect that what is asked again while nothing is written is not sent again."""
    filing.file_all(instance.database)
    before = caller.unchanged
    # There are four forms of each answer.
    for _ in range(8):
        caller.check(instance, FLEET)
    assert caller.unchanged > before


def rng_of_test() -> random.Random:
    seed = random.randrange(10**6)
    print("seed", seed)
    return random.Random(seed)


def begin(instance: Instance, writer: Writer) -> None:
    """Let there be something that all questions are about."""
    assert instance.client.call("PUT", "/traits/CUSTOM_T1").status == 201
    for _ in range(4):
        host = instance.client.make_provider(VCPU=20, DISK_GB=20)
        writer.providers.append(host)
        writer.consumers.append(fill(instance, host, 3))


def test_whatever_is_written_an_answer_that_differs_is_sent(
    instances: Instances,
) -> None:
    rng = rng_of_test()
    all_of_them = [instances.start(), instances.start(), instances.start(keeps=False)]
    writer, caller = Writer(rng, [each.client for each in all_of_them]), Caller(rng)
    begin(all_of_them[0], writer)
    for _ in range(40):
        if rng.random() < 0.7:
            writer.write()
        if rng.random() < 0.7:
            filing.file_all(all_of_them[0].database)
        for question in rng.sample(QUESTIONS, 3):
            caller.check(rng.choice(all_of_them), question)
    assert caller.changed
    expect_unchanged(caller, all_of_them[0])


def test_what_another_service_writes_is_an_answer_that_differs(
    instances: Instances,
) -> None:
    rng = rng_of_test()
    one, plain = instances.start(), instances.start(keeps=False)
    writer, foreign = Writer(rng, [one.client]), ForeignWriter(rng, plain.database)
    caller = Caller(rng)
    journal = one.context.journal
    assert journal
    begin(one, writer)
    expect_unchanged(caller, one)
    for _ in range(25):
        for question in rng.sample(QUESTIONS, 3):
            caller.check(one, question)
            caller.check(plain, question)
        foreign.write()
        one.clock.now += rng.choice([cache.CHECK_EVERY, cache.CHECK_EVERY, cache.QUIET])
        one.keeper.watch(one.database)
        one.keeper.read_again(one.database)
        tidying.record_gap(journal, lambda: math.inf)
        filing.file_all(one.database)
    assert caller.changed


def test_after_a_restore_no_tag_stands_for_what_is_lost(instances: Instances) -> None:
    rng = rng_of_test()
    one, other = instances.start(), instances.start()
    writer, caller = Writer(rng, [one.client]), Caller(rng)
    # The copy may differ in providers only, whose rows refer to each other.
    for _ in range(3):
        host = one.client.make_provider(VCPU=20)
        writer.providers.append(host)
        for _ in range(2):
            fill(one, host, 3)
        tables = (
            models.Allocation,
            models.Consumer,
            models.FOREST_STAMPS,
            *filing.TABLES,
        )
        filing.file_all(one.database)
        backup = Backup(one.database, *tables)
        for _ in range(2):
            fill(one, host, 2)
            filing.file_all(one.database)
            for question in QUESTIONS:
                caller.check(other, question)
        backup.restore()
        for question in QUESTIONS:
            caller.check(one, question)
            caller.check(other, question)
        fill(one, host, 2)
        filing.file_all(one.database)
        for question in QUESTIONS:
            caller.check(other, question)
    assert caller.changed


def test_a_cursor_that_is_gone_is_replaced(instances: Instances) -> None:
    one = instances.start()
    host = one.client.make_provider(VCPU=8)
    consumer = fill(one, host)
    filing.file_all(one.database)
    first = get(one, FLEET)
    # A lease changes no provider, but it is in the journal.
    lease = f"/ledger/v1/leases/{consumer}"
    for seconds in (60, 90):
        assert one.client.call("PUT", lease, {"seconds": seconds}).status == 200
    filing.file_all(one.database)
    tidying.expire(one.database, days=-1)
    gone = one.client.call("GET", f"/ledger/v1/changes?since={first.json['cursor']}")
    assert gone.status == 410
    again = get(one, FLEET, if_none_match=f'"{first.etag}"')
    assert again.status_int == 200
    one.client.get(f"/ledger/v1/changes?since={again.json['cursor']}")


def test_a_new_generation_alone_is_a_difference(instances: Instances) -> None:
    one = instances.start()
    host = one.client.make_provider(VCPU=20)
    body = {"resource_provider_generation": 1, "aggregates": []}
    tag = get(one, FLEET).etag
    assert get(one, FLEET, if_none_match=f'"{tag}"').status_int == 304
    path = f"/resource_providers/{host}/aggregates"
    assert one.client.call("PUT", path, body).status == 200
    assert get(one, FLEET, if_none_match=f'"{tag}"').status_int == 200
