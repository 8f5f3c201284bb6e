"""What is kept is what is stored, whatever any program writes, in any order."""

import functools
import random
from typing import Any, ClassVar

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from placement.db import models
from placement.forest import cache, loading
from placement.objects import change_log
from placement.objects.journal import filing
from placement_foundation.database.storage import Database
from tests import backends
from tests.client import new_uuid
from tests.instances import NOTICED_AFTER, Backup, Instance, Instances, ask
from tests.property.cloud import Writer
from tests.property.foreign import ForeignWriter

RANDOMS = st.randoms(use_true_random=False)


def check(connection: sa.Connection, instance: Instance) -> None:
    """Check that a transaction gets what it would read itself."""
    kept = cache.load(connection, instance.keeper)
    assert cache.are_same(kept, loading.load(connection))


class Cloud(RuleBasedStateMachine):
    """Two instances with what they keep, one that keeps nothing, and other programs."""

    database: ClassVar[Database]

    def __init__(self) -> None:
        super().__init__()
        self.database.write(backends.empty_placement)
        self.instances = Instances(self.database)
        self.keeping = [self.instances.start() for _ in range(2)]
        self.plain = self.instances.start(keeps=False)
        clients = [each.client for each in self.instances.all]
        self.writer = Writer(random.Random(1), clients)
        for _ in range(4):
            self.writer.add_provider()

    def teardown(self) -> None:
        for instance in self.instances.all:
            instance.close()

    def wait(self, seconds: float) -> None:
        for instance in self.keeping:
            instance.clock.now += seconds

    @rule(rng=RANDOMS, times=st.integers(1, 4))
    def write(self, rng: random.Random, times: int) -> None:
        self.writer.rng = rng
        for _ in range(times):
            self.writer.write()

    @rule(rng=RANDOMS, number=st.integers(1, 4))
    def place(self, rng: random.Random, number: int) -> None:
        instance = rng.choice(self.instances.all)
        consumers = [new_uuid() for _ in range(number)]
        answer = instance.client.place(consumers, at_least=1)
        assert answer.status in (201, 409)
        if answer.status == 201:
            self.writer.consumers += consumers

    @rule(rng=RANDOMS, is_beside=st.booleans())
    def let_another_service_write(self, rng: random.Random, is_beside: bool) -> None:
        ForeignWriter(rng, self.database).write()
        self.wait(NOTICED_AFTER)
        if is_beside:
            for instance in self.keeping:
                instance.keeper.watch(instance.database)

    @rule(ratio=st.sampled_from([0.5, 1.0, 1.5]))
    def change_what_no_sum_shows(self, ratio: float) -> None:
        changed = sa.update(models.Inventory).values(allocation_ratio=ratio)
        with self.database.engine.begin() as connection:
            connection.execute(changed)
        for instance in self.keeping:
            instance.keeper.read_again(instance.database)

    @rule()
    def be_quiet(self) -> None:
        self.wait(cache.QUIET)
        for instance in self.keeping:
            instance.keeper.watch(instance.database)

    @rule(rng=RANDOMS)
    def restore(self, rng: random.Random) -> None:
        tables = (
            models.Allocation,
            models.Consumer,
            models.FOREST_STAMPS,
            *filing.TABLES,
        )
        backup = Backup(self.database, *tables)
        row = models.ResourceProvider
        changing = sa.select(row.id, row.generation, row.updated_at)
        with self.database.engine.begin() as connection:
            providers = connection.execute(changing).all()
        for _ in range(rng.randrange(1, 4)):
            self.place(rng, 1)
        for instance in rng.sample(self.keeping, rng.randrange(3)):
            instance.database.read(functools.partial(check, instance=instance))
        backup.restore()
        with self.database.engine.begin() as connection:
            for key, generation, updated_at in providers:
                values = {"generation": generation, "updated_at": updated_at}
                itself = sa.update(row).where(row.id == key)
                connection.execute(itself.values(values))
        if rng.random() < 0.5:
            # The lists of some shards go on from there; those of others look older.
            self.place(rng, 1)

    @rule(rng=RANDOMS)
    def look_late(self, rng: random.Random) -> None:
        late, other = rng.sample(self.keeping, 2)

        def look(connection: sa.Connection) -> None:
            # The moment of this transaction is that of its first statement.
            connection.execute(sa.text("SELECT count(*) FROM traits"))
            other.client.place([new_uuid()])
            late.database.read(functools.partial(check, instance=late))
            check(connection, late)

        late.database.read(look)

    @invariant()
    def every_read_is_as_if_nothing_were_kept(self) -> None:
        for instance in self.keeping:
            instance.database.read(functools.partial(check, instance=instance))

    @rule(rng=RANDOMS)
    def ask(self, rng: random.Random) -> None:
        self.writer.rng = rng
        questions: list[Any] = [
            self.writer.question(),
            self.writer.question_about_one_provider(),
            rng.choice(self.writer.questions_about_usages()),
        ]
        for question in questions:
            expected = ask(self.plain, question)
            for instance in self.keeping:
                assert ask(instance, question) == expected


# As usual, and as if nothing said which trees of a shard changed.
@pytest.mark.parametrize("most_listed", [change_log.MOST_LISTED, 0])
def test_what_is_kept_is_what_is_stored(
    most_listed: int, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "MOST_LISTED", most_listed)
    machine = type("CloudOfTest", (Cloud,), {"database": database})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=3,
            stateful_step_count=20,
            derandomize=True,
        ),
    )
