"""The tables: columns and constraints, nothing else.

The tables of ``Base`` are those of OpenStack Placement at its head revision: either
service can run on a database made by the other.
"""

import datetime

import sqlalchemy as sa
from oslo_utils.timeutils import utcnow
from sqlalchemy import orm
from sqlalchemy.dialects import mysql


class Base(orm.DeclarativeBase):
    """The columns of every table: when a row was created, and last changed."""

    created_at: orm.Mapped[datetime.datetime | None] = orm.mapped_column(
        default=utcnow, sort_order=-2
    )
    updated_at: orm.Mapped[datetime.datetime | None] = orm.mapped_column(
        onupdate=utcnow, sort_order=-1
    )


class ResourceProvider(Base):
    """Something that has inventories; a node of a tree."""

    __tablename__ = "resource_providers"
    __table_args__ = (
        sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
        sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
        sa.Index("resource_providers_root_provider_id_idx", "root_provider_id"),
        sa.Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(36))
    name: orm.Mapped[str | None] = orm.mapped_column(sa.String(200))
    generation: orm.Mapped[int | None]
    root_provider_id: orm.Mapped[int | None] = orm.mapped_column(
        sa.ForeignKey("resource_providers.id")
    )
    parent_provider_id: orm.Mapped[int | None] = orm.mapped_column(
        sa.ForeignKey("resource_providers.id")
    )


class ResourceClass(Base):
    """A kind of resource. The id of a standard one is below 10000 and may be 0."""

    __tablename__ = "resource_classes"
    __table_args__ = (sa.UniqueConstraint("name", name="uniq_resource_classes0name"),)

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(255))


class Inventory(Base):
    """How much of a resource class a resource provider has."""

    __tablename__ = "inventories"
    __table_args__ = (
        sa.UniqueConstraint(
            "resource_provider_id",
            "resource_class_id",
            name="uniq_inventories0resource_provider_resource_class",
        ),
        sa.Index("inventories_resource_class_id_idx", "resource_class_id"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    resource_provider_id: orm.Mapped[int]
    resource_class_id: orm.Mapped[int]
    total: orm.Mapped[int]
    reserved: orm.Mapped[int]
    min_unit: orm.Mapped[int]
    max_unit: orm.Mapped[int]
    step_size: orm.Mapped[int]
    allocation_ratio: orm.Mapped[float] = orm.mapped_column(sa.Float)


class Allocation(Base):
    """How much of a resource class of a provider a consumer uses."""

    __tablename__ = "allocations"
    __table_args__ = (
        sa.Index(
            "allocations_resource_provider_class_used_idx",
            "resource_provider_id",
            "resource_class_id",
            "used",
        ),
        sa.Index("allocations_resource_class_id_idx", "resource_class_id"),
        sa.Index("allocations_consumer_id_idx", "consumer_id"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    resource_provider_id: orm.Mapped[int]
    # The uuid of the consumer, not its id.
    consumer_id: orm.Mapped[str] = orm.mapped_column(sa.String(36))
    resource_class_id: orm.Mapped[int]
    used: orm.Mapped[int]


class ConsumerType(Base):
    """What a consumer is: an instance, a migration, a volume."""

    __tablename__ = "consumer_types"
    __table_args__ = (sa.UniqueConstraint("name", name="uniq_consumer_types0name"),)

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(255))


class Consumer(Base):
    """Something that has allocations."""

    __tablename__ = "consumers"
    __table_args__ = (
        sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
        sa.Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
        sa.Index(
            "consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"
        ),
        sa.Index("consumers_consumer_type_id_idx", "consumer_type_id"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(sa.String(36))
    project_id: orm.Mapped[int]
    user_id: orm.Mapped[int]
    generation: orm.Mapped[int] = orm.mapped_column(default=0, server_default="0")
    consumer_type_id: orm.Mapped[int | None] = orm.mapped_column(
        sa.ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey")
    )


class Project(Base):
    """A project that consumers belong to, with the id that it has elsewhere."""

    __tablename__ = "projects"
    __table_args__ = (
        sa.UniqueConstraint("external_id", name="uniq_projects0external_id"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    external_id: orm.Mapped[str] = orm.mapped_column(sa.String(255))


class User(Base):
    """A user that consumers belong to, with the id that it has elsewhere."""

    __tablename__ = "users"
    __table_args__ = (
        sa.UniqueConstraint("external_id", name="uniq_users0external_id"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    external_id: orm.Mapped[str] = orm.mapped_column(sa.String(255))


class Trait(Base):
    """A quality that resource providers may have."""

    __tablename__ = "traits"
    __table_args__ = (sa.UniqueConstraint("name", name="uniq_traits0name"),)

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(255))


class ResourceProviderTrait(Base):
    """A resource provider has a trait."""

    __tablename__ = "resource_provider_traits"
    __table_args__ = (
        sa.Index(
            "resource_provider_traits_resource_provider_trait_idx",
            "resource_provider_id",
            "trait_id",
        ),
    )

    trait_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("traits.id"), primary_key=True
    )
    resource_provider_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("resource_providers.id"), primary_key=True
    )


class Aggregate(Base):
    """A set of resource providers: nothing but a UUID, as it was first sent."""

    __tablename__ = "placement_aggregates"
    __table_args__ = (
        sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    uuid: orm.Mapped[str | None] = orm.mapped_column(sa.String(36))


class ResourceProviderAggregate(Base):
    """A resource provider is in an aggregate."""

    __tablename__ = "resource_provider_aggregates"
    __table_args__ = (
        sa.Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
    )

    resource_provider_id: orm.Mapped[int] = orm.mapped_column(
        primary_key=True, autoincrement=False
    )
    aggregate_id: orm.Mapped[int] = orm.mapped_column(
        primary_key=True, autoincrement=False
    )


# How rows refer to each other where no foreign key says so.
OF_PROVIDER = ResourceProvider.id == Allocation.resource_provider_id
OF_CLASS = ResourceClass.id == Allocation.resource_class_id
OF_CONSUMER = Consumer.uuid == Allocation.consumer_id
OF_PROJECT = Project.id == Consumer.project_id
OF_USER = User.id == Consumer.user_id
OF_INVENTORY = (Allocation.resource_provider_id == Inventory.resource_provider_id) & (
    Allocation.resource_class_id == Inventory.resource_class_id
)

# The tables of our own, unknown to OpenStack Placement and migrated separately.
OWN = sa.MetaData()

# Each row lists the latest changes of some trees, and the last row those of names.
FOREST_STAMPS = sa.Table(
    "forest_stamps",
    OWN,
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("changes", sa.String(500), nullable=False),
)

# The journal. A transaction that writes puts its entries into the inbox, whose ids are
# drawn before it commits; filing assigns the next positions to committed rows.
# ``BIGINT`` is not a key that SQLite counts up.
_BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_MICROSECONDS = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT, "mysql", "mariadb")
# MySQL has no type for them, and MariaDB not in all releases.
_UUID = sa.CHAR(36).with_variant(sa.Uuid(as_uuid=False), "postgresql")

JOURNAL_INBOX = sa.Table(
    "journal_inbox",
    OWN,
    sa.Column("id", _BIG, primary_key=True, autoincrement=True),
    sa.Column("time", _MICROSECONDS, nullable=False),
    # The entries of one transaction, and where it came from, as JSON.
    sa.Column("entries", _LONG_TEXT, nullable=False),
)
# One entry: what it is found by in columns, and the rest as JSON; see
# placement/objects/journal/filed_entry.py.
JOURNAL_ENTRIES = sa.Table(
    "journal_entries",
    OWN,
    sa.Column("position", _BIG, primary_key=True, autoincrement=False),
    sa.Column("time", _MICROSECONDS, nullable=False),
    sa.Column("id", _UUID, nullable=False),
    sa.Column("subject", _UUID),
    sa.Column("root", _UUID),
    sa.Column("request_id", _UUID),
    sa.Column("document", _LONG_TEXT, nullable=False),
    sa.Index("journal_entries_time_idx", "time"),
    sa.Index("journal_entries_subject_idx", "subject", "position"),
    sa.Index("journal_entries_root_idx", "root", "position"),
    sa.Index("journal_entries_request_id_idx", "request_id", "position"),
)
# What else entries mention, such as the providers in a tree, and which are gaps.
JOURNAL_MENTIONS = sa.Table(
    "journal_mentions",
    OWN,
    sa.Column("mentioned", _UUID, primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
)
# One row: the life of this journal, how far it is filed and expired, and when old
# entries were last removed.
JOURNAL_STATE = sa.Table(
    "journal_state",
    OWN,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("life", sa.String(12), nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("token", sa.String(12), nullable=False),
    sa.Column("expired", sa.BigInteger, nullable=False),
    sa.Column("expired_token", sa.String(12), nullable=False),
    sa.Column("begins", _MICROSECONDS, nullable=False),
    sa.Column("tidied", _MICROSECONDS, nullable=False),
)

# When the allocations of a consumer end by themselves, unless they are confirmed: in
# milliseconds since 1970, by the database's clock. Another service may delete a
# consumer without its lease, and SQLite may then use the id again: the consumer of a
# lease has both its id and its UUID.
LEASES = sa.Table(
    "consumer_leases",
    OWN,
    sa.Column("consumer_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("consumer_uuid", sa.String(36), nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
    sa.Index("consumer_leases_expires_at_idx", "expires_at"),
)
# Tables made by another service may have other collations, so strings are cast.
IS_LEASED = (Consumer.id == LEASES.c.consumer_id) & (
    sa.cast(Consumer.uuid, sa.String(36))
    == sa.cast(LEASES.c.consumer_uuid, sa.String(36))
)

# The latest declaration of each provider by each owner of hardware.
DECLARATIONS = sa.Table(
    "declarations",
    OWN,
    sa.Column("provider_uuid", sa.String(36), primary_key=True),
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Column("document", _LONG_TEXT, nullable=False),
    sa.Index("declarations_owner_idx", "owner"),
)

# Notes of operators and their programs on the cloud, as JSON: see
# placement/objects/note.py.
NOTES = sa.Table(
    "notes",
    OWN,
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Column("document", _LONG_TEXT, nullable=False),
)
