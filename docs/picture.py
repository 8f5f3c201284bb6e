"""Draw the pictures of this documentation: ``python -m docs.picture``.

They show what commands print, about a small cloud that is the same each time.
"""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from rich import _export_format
from rich.console import Console

from benchmarks import client, cloud
from benchmarks.cloud import Node
from placement.db import migration
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_clients.explain import drawing
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.option import DatabaseSettings

PICTURE = Path(__file__).with_name("placement-explain.svg")
QUERY = "resources=VCPU:16,MEMORY_MB:32768&required=CUSTOM_TRUSTED,!CUSTOM_RETIRING"
COMMAND = f"placement-explain '{QUERY}'"
WIDTH = 110

# A viewer that draws the picture loads nothing from elsewhere.
FORMAT = re.sub(
    r"@font-face \{\{.*?\}\}", "", _export_format.CONSOLE_SVG_FORMAT, flags=re.S
)


def hosts() -> Iterator[Node]:
    """Yield hosts, some of them trusted, some being retired, more or less in use."""
    for number in range(1, 61):
        traits = ["HW_CPU_X86_VMX"]
        if number % 5 < 2:
            traits.append("CUSTOM_TRUSTED")
        if number % 12 == 0:
            traits.append("CUSTOM_RETIRING")
        yield Node(
            f"compute{number}",
            None,
            {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 4_000},
            traits=tuple(traits),
            # Each of four consumers has the same amount.
            used={"VCPU": 13 + number % 3, "MEMORY_MB": 8_192 * (4 + number % 3)},
        )


def draw(database: Database) -> str:
    """Return the picture of an explanation, by a service on an empty database."""
    cloud.plant(database, hosts())
    ask = client.in_process(database)
    _, document = ask("GET", f"/ledger/v1/explanation?{QUERY}", None)
    console = Console(
        record=True,
        width=WIDTH,
        force_terminal=True,
        file=io.StringIO(),
        highlight=False,
    )
    drawing.draw_explanation(console, json.loads(document))
    return console.export_svg(title=COMMAND, code_format=FORMAT, unique_id="explain")


def main() -> None:
    """Write the pictures to the files that the documentation shows."""
    database = storage.connect(DatabaseSettings("sqlite://"))
    migration.SCHEMA.upgrade(database)
    standard_name.synchronise(Ledger(database))
    PICTURE.write_text(draw(database))


if __name__ == "__main__":
    main()
