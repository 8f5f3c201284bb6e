"""Do nothing: a table that a later revision removes was created here."""

revision = "e2b94a7c30f1"
down_revision = "c7e80b15d64f"


def upgrade() -> None:
    pass
