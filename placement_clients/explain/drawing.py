"""Output of the ledger for people: with bars on a terminal, plain in a pipe."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placement_clients.output import csv_cell, print_table, table_of, text_of
from placement_clients.record import Json

# The width of a bar for all hosts, or for all of an inventory.
BAR_WIDTH = 20
FULL, EMPTY = "█", "░"

# The names in a row of a table, a bar for a terminal, and the numbers.
Row = tuple[list[Text], Text, list[Text]]


def draw_explanation(console: Console, document: Json) -> None:
    """Draw the summary, the funnel, what would help, and the hosts in the query."""
    summary = text_of(document["summary"], style="bold")
    console.print(summary, soft_wrap=not console.is_terminal)
    if not document["complete"]:
        console.print(text_of("The time ran out: not everything was searched."))
    for title, table in _tables(console, document):
        console.print()
        if title:
            console.print(text_of(title, style="bold"))
        print_table(console, table)


def _tables(console: Console, document: Json) -> Iterator[tuple[str, Table]]:
    if document["constraints"]:
        numbers = ["HOSTS", "OUT", "ALONE", "GAIN"]
        yield "", _table(console, ["CONSTRAINT"], numbers, _funnel(document))
    if document.get("changes"):
        changes = ([text_of(f"• {each['text']}")] for each in document["changes"])
        yield "What would help", _rows(console, changes)
    if document.get("near"):
        yield "Nearest hosts", _rows(console, _near(document))
    for host in document.get("host", ()):
        verdict = "serves" if host["serves"] else "does not serve"
        yield f"{host['name']} {verdict}", _rows(console, _verdicts(host, document))


def _funnel(document: Json) -> Iterator[Row]:
    for each in document["constraints"]:
        out = each["before"] - each["after"]
        text = text_of(each["text"], style="" if out else "dim")
        numbers = [
            text_of(str(each["after"])),
            text_of(f"-{out}" if out else "", style="red"),
            text_of(str(each.get("alone", "?"))),
            text_of(f"+{each['gain']}" if each.get("gain") else "", style="green"),
        ]
        yield [text], _bar(each["after"], each["before"], document["hosts"]), numbers


def _table(
    console: Console, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Row]
) -> Table:
    """Return a table with columns for names, for a bar on a terminal, and numbers."""
    table = table_of(console)
    for name in names:
        table.add_column(name, overflow="fold")
    if console.is_terminal:
        table.add_column("", no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    for cells, bar, amounts in rows:
        table.add_row(*cells, *([bar] if console.is_terminal else []), *amounts)
    return table


def _bar(after: int, before: int, whole: int) -> Text:
    """Draw how much of a whole is left, and how much is excluded."""
    left, had = (_length(count, whole) for count in (after, before))
    bar = text_of(FULL * left, style="green" if after else "")
    bar.append(FULL * (had - left), style="red")
    bar.append(EMPTY * (BAR_WIDTH - had), style="dim")
    return bar


def _length(count: int, whole: int) -> int:
    """Return the length of a bar; any amount above 0 is visible."""
    return max(round(BAR_WIDTH * count / whole), 1) if count and whole else 0


def _near(document: Json) -> Iterator[list[Text]]:
    for host in document["near"]:
        for number, unmet in enumerate(host["unmet"]):
            yield [
                text_of("" if number else host["name"] or host["uuid"], style="bold"),
                text_of(unmet["id"]),
                text_of(_lack(unmet)),
            ]
            yield from _holders(unmet)


def _holders(unmet: Json) -> Iterator[list[Text]]:
    for holder in unmet.get("holders", ()):
        yield [text_of(""), text_of(""), text_of(_holder(holder), style="dim")]


def _holder(holder: Json) -> str:
    about = ", ".join(filter(None, (holder["type"], holder["project"])))
    return f"{holder['amount']} held by {holder['consumer']} ({about or 'unknown'})"


def _lack(unmet: Json) -> str:
    needs = f"needs {_told(unmet['needs'])}" if "needs" in unmet else ""
    if "has" not in unmet:
        return needs
    has = f"has {_told(unmet['has'])}"
    if "capacity" in unmet:
        has += f" ({_inventory(unmet)})"
    return f"{needs}, {has}"


def _inventory(unmet: Json) -> str:
    """Return how much of an inventory is used, and what makes its capacity less."""
    said = f"{unmet['used']} of {unmet['capacity']} used"
    reserved, ratio = unmet.get("reserved", 0), unmet.get("allocation_ratio", 1)
    if reserved or ratio != 1:
        said += f"; total {unmet['total']}, reserved {reserved}, ratio {ratio:g}"
    return said


def _told(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    if isinstance(value, list):
        return " or ".join(map(str, value)) or "none"
    return str(value)


def _verdicts(host: Json, document: Json) -> Iterator[list[Text]]:
    texts = {each["id"]: each["text"] for each in document["constraints"]}
    for each in host["constraints"]:
        met = each["met"]
        closest = {} if met else each.get("closest", {})
        yield [
            text_of("met" if met else "UNMET", style="green" if met else "bold red"),
            text_of(texts[each["id"]]),
            text_of(_lack(closest)),
        ]
        yield from _holders(closest)


def draw_capacity(console: Console, document: Json) -> None:
    """Draw how many times a request could be claimed, and where."""
    bound = "" if document["exact"] else "at least "
    times = "once" if document["total"] == 1 else f"{document['total']} times"
    complete = document.get("complete", True)
    if not document["total"]:
        said = "This cannot be claimed." if complete else "No host was found in time."
        console.print(text_of(said, style="bold"))
        return
    said = f"This can be claimed {bound}{times}."
    console.print(text_of(said, style="bold"))
    if not complete:
        console.print(text_of("The time ran out: not all hosts were counted."))
    console.print()
    print_table(console, _table(console, ["HOST"], ["TIMES"], _hosts(document)))


def _hosts(document: Json) -> Iterator[Row]:
    most = max((each["count"] for each in document["hosts"]), default=0)
    for each in document["hosts"]:
        name, count = each["name"] or each["uuid"], each["count"]
        yield [text_of(name)], _bar(count, count, most), [text_of(str(count))]


def draw_fleet(console: Console, document: Json) -> None:
    """Draw all providers, each tree with its members below one another."""
    rows = _inventories(document)
    columns = ["PROVIDER", "CLASS"], ["USED", "CAPACITY"]
    print_table(console, _table(console, *columns, rows))


def _inventories(document: Json) -> Iterator[Row]:
    depths: dict[str | None, int] = {None: -1}
    for each in document["providers"]:
        depth = depths.get(each["parent_provider_uuid"], -1) + 1
        depths[each["uuid"]] = depth
        name = text_of("  " * depth + (each["name"] or each["uuid"]), style="bold")
        if not each["inventories"]:
            yield [name, Text()], Text(), [Text(), Text()]
        for number, (kind, inventory) in enumerate(each["inventories"].items()):
            used, capacity = each["usages"].get(kind, 0), capacity_of(inventory)
            cells = [Text() if number else name, text_of(kind)]
            bar = _bar(used, used, max(capacity, used))
            yield cells, bar, [text_of(str(used)), text_of(str(capacity))]


def capacity_of(inventory: Json) -> int:
    """Return how much of an inventory can be allocated in all."""
    free = inventory["total"] - inventory["reserved"]
    return int(free * inventory["allocation_ratio"])


COLUMNS = ("uuid", "name", "parent_provider_uuid", "root_provider_uuid")
AMOUNTS = ("total", "reserved", "allocation_ratio")


def fleet_as_csv(document: Json) -> str:
    """Return a row for each inventory, and one for each provider without any."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, "resource_class", *AMOUNTS, "capacity", "used"])
    for each in document["providers"]:
        about = [csv_cell(each[name]) for name in COLUMNS]
        if not each["inventories"]:
            rows.writerow([*about, *[""] * (len(AMOUNTS) + 3)])
        for kind, inventory in each["inventories"].items():
            amounts = [inventory[name] for name in AMOUNTS]
            used = each["usages"].get(kind, 0)
            rows.writerow([*about, kind, *amounts, capacity_of(inventory), used])
    return text.getvalue()


def _rows(console: Console, rows: Iterable[Sequence[Text]]) -> Table:
    table = table_of(console, header=False)
    for row in rows:
        table.add_row(*row)
    return table
