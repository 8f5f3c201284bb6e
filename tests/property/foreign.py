"""Random writes as OpenStack Placement makes them: nothing records what has changed.

They keep what they can: numbers of rows, and sums of ids and generations.
"""

import random
import uuid
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.db.models import (
    Aggregate,
    Allocation,
    Inventory,
    ResourceClass,
    ResourceProvider,
    ResourceProviderAggregate,
    ResourceProviderTrait,
    Trait,
)
from placement_foundation.database.storage import Database


class ForeignWriter:
    """Changes a cloud by SQL, at random. An act returns whether it changed anything."""

    def __init__(self, rng: random.Random, database: Database) -> None:
        self.rng = rng
        self.database = database
        self.connection: Any = None

    def write(self) -> str | None:
        """Write something; return what it was, or None if there was nothing to do."""
        acts = [
            self.replace_provider,
            self.exchange_parents,
            self.exchange_places,
            self.make_anew,
            self.rename,
            self.change_inventory,
            self.move_inventory,
            self.exchange_traits,
            self.exchange_aggregates,
            self.give_back,
            self.move_allocations,
            self.exchange_usages,
            self.add_class,
        ]
        act = self.rng.choice(acts)
        with self.database.engine.begin() as self.connection:
            return act.__name__ if act() else None

    def execute(self, statement: Any) -> Any:
        return self.connection.execute(statement)

    def rows(self, model: Any, *conditions: Any) -> list[Any]:
        """Return rows, in random order."""
        keys = list(model.__table__.primary_key)
        query = sa.select(model.__table__).where(*conditions).order_by(*keys)
        rows = list(self.execute(query))
        self.rng.shuffle(rows)
        return rows

    def update(self, model: Any, row_id: int, **values: Any) -> None:
        self.execute(sa.update(model).where(model.id == row_id).values(**values))

    def raise_generation(self, provider_id: int) -> None:
        generation = ResourceProvider.generation + 1
        self.update(ResourceProvider, provider_id, generation=generation)

    def bare(self) -> list[Any]:
        """Return the providers that nothing refers to, but associations."""
        provider, used = ResourceProvider, sa.select(Allocation.resource_provider_id)
        child = sa.orm.aliased(provider)
        parents = sa.select(child.parent_provider_id).where(
            child.parent_provider_id.is_not(None)
        )
        return self.rows(
            provider, provider.id.not_in(used), provider.id.not_in(parents)
        )

    def delete(self, provider: Any) -> list[Any]:
        """Delete a provider; return its inventories."""
        inventories = self.rows(
            Inventory, Inventory.resource_provider_id == provider.id
        )
        for model in (Inventory, ResourceProviderTrait, ResourceProviderAggregate):
            of_it = model.resource_provider_id == provider.id
            self.execute(sa.delete(model).where(of_it))
        self.update(ResourceProvider, provider.id, root_provider_id=None)
        is_it = ResourceProvider.id == provider.id
        self.execute(sa.delete(ResourceProvider).where(is_it))
        return inventories

    def create(self, old: Any) -> int:
        """Create a provider like a deleted one; return its id."""
        new = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        values = {
            "uuid": new,
            "name": new,
            "generation": old.generation,
            "parent_provider_id": old.parent_provider_id,
        }
        inserted = self.execute(sa.insert(ResourceProvider).values(**values))
        new_id: int = inserted.inserted_primary_key[0]
        root = new_id if old.parent_provider_id is None else old.root_provider_id
        self.update(ResourceProvider, new_id, root_provider_id=root)
        return new_id

    def replace_provider(self) -> bool:
        for old in self.bare()[:1]:
            inventories = self.delete(old)
            new_id = self.create(old)
            for inventory in inventories:
                values = {**inventory._asdict(), "resource_provider_id": new_id}
                del values["id"]
                self.execute(sa.insert(Inventory).values(**values))
            return True
        return False

    def make_anew(self) -> bool:
        for old in self.bare()[:1]:
            self.delete(old)
            self.create(old)
            return True
        return False

    def children(self) -> list[Any]:
        provider = ResourceProvider
        return self.rows(provider, provider.parent_provider_id.is_not(None))

    def exchange_parents(self) -> bool:
        bare = {row.id for row in self.bare()}
        children = [row for row in self.children() if row.id in bare]
        for one in children:
            for other in children:
                if one.parent_provider_id != other.parent_provider_id:
                    for row, like in ((one, other), (other, one)):
                        self.update(
                            ResourceProvider,
                            row.id,
                            parent_provider_id=like.parent_provider_id,
                            root_provider_id=like.root_provider_id,
                        )
                    return True
        return False

    def exchange_places(self) -> bool:
        """Let a root and a child below another one change places."""
        roots = [row for row in self.bare() if row.parent_provider_id is None]
        bare = {row.id for row in self.bare()}
        children = [row for row in self.children() if row.id in bare]
        for root in roots:
            for child in children:
                if child.parent_provider_id != root.id:
                    self.update(
                        ResourceProvider,
                        root.id,
                        parent_provider_id=child.parent_provider_id,
                        root_provider_id=child.root_provider_id,
                    )
                    self.update(
                        ResourceProvider,
                        child.id,
                        parent_provider_id=None,
                        root_provider_id=child.id,
                    )
                    return True
        return False

    def rename(self) -> bool:
        for row in self.rows(ResourceProvider)[:1]:
            name = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
            self.update(ResourceProvider, row.id, name=name)
            return True
        return False

    def change_inventory(self) -> bool:
        for row in self.rows(Inventory)[:1]:
            self.update(Inventory, row.id, total=row.total + 1)
            self.raise_generation(row.resource_provider_id)
            return True
        return False

    def move_inventory(self) -> bool:
        """Take an inventory from one provider, and let another one have it."""
        used = {row.resource_provider_id for row in self.rows(Allocation)}
        for row in self.rows(Inventory):
            of_class = Inventory.resource_class_id == row.resource_class_id
            having = sa.select(Inventory.resource_provider_id).where(of_class)
            lacking = self.rows(ResourceProvider, ResourceProvider.id.not_in(having))
            if lacking and row.resource_provider_id not in used:
                self.update(Inventory, row.id, resource_provider_id=lacking[0].id)
                self.raise_generation(row.resource_provider_id)
                self.raise_generation(lacking[0].id)
                return True
        return False

    def exchange_traits(self) -> bool:
        names = Trait.name.startswith("CUSTOM_T")
        provider_id = self.exchange(ResourceProviderTrait, "trait_id", Trait, names)
        if provider_id is not None:
            self.raise_generation(provider_id)
        return provider_id is not None

    def exchange_aggregates(self) -> bool:
        """Exchange one for another, as below microversion 1.19."""
        found = self.exchange(ResourceProviderAggregate, "aggregate_id", Aggregate)
        return found is not None

    def exchange(
        self, association: Any, key: str, model: Any, *conditions: Any
    ) -> int | None:
        """Exchange what a provider has for another one; return the provider's id."""
        column = getattr(association, key)
        for row in self.rows(association):
            mine = association.resource_provider_id == row.resource_provider_id
            having = sa.select(column).where(mine)
            for other in self.rows(model, *conditions, model.id.not_in(having))[:1]:
                is_row = column == getattr(row, key)
                changed = sa.update(association).where(mine, is_row)
                self.execute(changed.values({key: other.id}))
                provider_id: int = row.resource_provider_id
                return provider_id
        return None

    def give_back(self) -> bool:
        for row in self.rows(Allocation)[:1]:
            of_it = Allocation.consumer_id == row.consumer_id
            self.execute(sa.delete(Allocation).where(of_it))
            consumer = models.Consumer.uuid == row.consumer_id
            self.execute(sa.delete(models.Consumer).where(consumer))
            return True
        return False

    def move_allocations(self) -> bool:
        """Move an allocation to another provider, whose generation alone is raised."""
        for row in self.rows(Allocation):
            of_class = Inventory.resource_class_id == row.resource_class_id
            # Not where the consumer uses the class already.
            using = sa.select(Allocation.resource_provider_id).where(
                Allocation.consumer_id == row.consumer_id,
                Allocation.resource_class_id == row.resource_class_id,
            )
            elsewhere = Inventory.resource_provider_id.not_in(using)
            for inventory in self.rows(Inventory, of_class, elsewhere)[:1]:
                self.update(
                    Allocation,
                    row.id,
                    resource_provider_id=inventory.resource_provider_id,
                )
                self.raise_generation(inventory.resource_provider_id)
                return True
        return False

    def exchange_usages(self) -> bool:
        """Let two allocations of a class change their amounts."""
        rows = self.rows(Allocation)
        for one in rows:
            for other in rows:
                if (
                    one.resource_class_id == other.resource_class_id
                    and one.resource_provider_id != other.resource_provider_id
                    and one.used != other.used
                ):
                    self.update(Allocation, one.id, used=other.used)
                    self.update(Allocation, other.id, used=one.used)
                    return True
        return False

    def add_class(self) -> bool:
        highest = self.connection.scalar(sa.select(sa.func.max(ResourceClass.id)))
        name = f"CUSTOM_F{self.rng.getrandbits(32)}"
        values = {"id": max(highest, 9999) + 1, "name": name}
        self.execute(sa.insert(ResourceClass).values(**values))
        return True
