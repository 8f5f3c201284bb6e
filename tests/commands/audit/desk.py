"""A cloud with claims, and a user of ``placement-audit``."""

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement_clients.audit import cli
from placement_foundation.database.storage import Database
from tests.client import Amounts, Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class Desk:
    """A user of the command, with a file of those that live.

    :param url: of the Placement that the command is to use
    """

    def __init__(
        self,
        url: str,
        application: "WSGIApplication",
        database: Database,
        directory: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.url = url
        self.client = Client(application)
        self.alive = directory / "alive.ndjson"
        self.undo = directory / "undo.ndjson"
        self._database = database
        self._capsys = capsys
        self.alive.touch()

    def run(self, *arguments: str) -> tuple[int, str, str]:
        status = cli.main([*arguments, "--url", self.url, "--token", "admin"])
        printed = self._capsys.readouterr()
        return status, printed.out, printed.err

    def audit(self, *arguments: str) -> tuple[int, str, str]:
        return self.run("--alive", str(self.alive), *arguments)

    def release(self, *arguments: str) -> tuple[int, str, str]:
        undo = ("--undo-file", str(self.undo))
        return self.audit("--release", "--yes", *undo, *arguments)

    def findings(self, *arguments: str) -> list[tuple[str, str]]:
        """Return the kinds and consumers of what is found."""
        status, out, _ = self.audit("--json", *arguments)
        report = json.loads(out)
        found = [(each["kind"], each["consumer"]) for each in report["findings"]]
        assert status == (1 if found else 0)
        assert sum(report["counts"].values()) == len(found)
        return found

    def lives(self, *consumers: str, **about: Any) -> None:
        """List consumers as alive, from now on."""
        with self.alive.open("a") as file:
            for consumer in consumers:
                print(json.dumps({"uuid": consumer, **about}), file=file)

    def host(self, name: str, parent: str | None = None, **totals: int) -> str:
        """Create a provider with inventories, and return its UUID."""
        provider = new_uuid()
        body: Any = {"name": name, "uuid": provider, "parent_provider_uuid": parent}
        assert self.client.call("POST", "/resource_providers", body).status == 200
        body = {
            "resource_provider_generation": 0,
            "inventories": {each: {"total": total} for each, total in totals.items()},
        }
        path = f"/resource_providers/{provider}/inventories"
        assert self.client.call("PUT", path, body).status == 200
        return provider

    def claim(self, amounts: Amounts, hours: float = 2, **about: Any) -> str:
        """Claim for a new consumer, some hours ago, and return its UUID."""
        consumer = new_uuid()
        answer = self.client.claim(consumer, amounts, **about)
        assert answer.status == 204, answer
        self.age(consumer, hours)
        return consumer

    def age(self, consumer: str, hours: float) -> None:
        table = models.Consumer
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        created = now - datetime.timedelta(hours=hours)
        statement = (
            sa.update(table).where(table.uuid == consumer).values(created_at=created)
        )
        self._database.write(lambda connection: connection.execute(statement))

    def allocations(self, consumer: str) -> Any:
        """Return what a consumer claims and for whom, without generations."""
        document = self.client.get(f"/allocations/{consumer}")
        document.pop("consumer_generation", None)
        for each in document["allocations"].values():
            each.pop("generation")
        return document

    def everything(self) -> Any:
        """Return all claims, without what writing the same again changes."""
        fleet = self.client.get("/ledger/v1/fleet?fields=consumers,usages")
        for provider in fleet["providers"]:
            for each in provider["allocations"].values():
                each.pop("created_at")
        return fleet["providers"]
