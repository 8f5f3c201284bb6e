"""What an explanation says in words, for somebody who has little time.

All sentences are here. They name things and count hosts; in the singular they are right
as well.
"""

from collections.abc import Sequence

from placement.explanation.constraint import Constraint
from placement.explanation.report import Change, Figures, Report

# So many reasons are told one by one.
MOST_REASONS = 3


def hosts(count: int) -> str:
    """Return a number of hosts."""
    return f"{count} host" if count == 1 else f"{count} hosts"


def joined(words: Sequence[str], last: str = "and") -> str:
    """Join words as one speaks: a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def group_of(suffix: str | None) -> str:
    """Return what a group is called behind what is said of it, if it has a name."""
    return f" for group {suffix}" if suffix else ""


def _names(constraint: Constraint) -> tuple[str, ...]:
    return constraint.value if isinstance(constraint.value, tuple) else ()


def _groups(constraint: Constraint) -> str:
    """Return which groups are named: groups 1 and 2."""
    named = [suffix or "without suffix" for suffix in _names(constraint)]
    return f"group {named[0]}" if len(named) == 1 else f"groups {joined(named)}"


def _amount(constraint: Constraint) -> str:
    return f"{constraint.value} {constraint.resource_class}"


def text(constraint: Constraint) -> str:
    """Return what a constraint asks for, as a sentence without a full stop."""
    behind = group_of(constraint.suffix)
    names = joined(_names(constraint), "or")
    match constraint.kind:
        case "root_required":
            return f"the host itself has {constraint.value}"
        case "root_forbidden":
            return f"the host itself does not have {constraint.value}"
        case "inventory":
            return f"there is {constraint.resource_class}{behind}"
        case "in_tree":
            return f"what serves{behind} is in the tree of {constraint.value}"
        case "member_of":
            return f"what serves{behind} is in aggregate {names}"
        case "not_member_of":
            return f"what serves{behind} is not in aggregate {constraint.value}"
        case "required":
            return f"one provider that serves{behind} has {names}"
        case "forbidden":
            return f"no provider that serves{behind} has {constraint.value}"
        case "unit":
            return f"{_amount(constraint)} can be given to one consumer{behind}"
        case "room":
            are = "is" if constraint.value == 1 else "are"
            return f"{_amount(constraint)} {are} free{behind}"
        case "together":
            return f"one host serves {_groups(constraint)} at the same time"
        case "isolate":
            return "each group with a suffix has a provider of its own"
    return f"{_groups(constraint)} are served from one subtree"


def lacking(count: int, figures: Figures) -> str:
    """Return what some hosts lack: 12 have less than 16 VCPU free."""
    constraint = figures.constraint
    have, lack, are = ("has", "lacks", "is") if count == 1 else ("have", "lack", "are")
    do = "does" if count == 1 else "do"
    behind = group_of(constraint.suffix)
    names = _names(constraint)
    match constraint.kind:
        case "root_required":
            said = f"{lack} {constraint.value}"
        case "root_forbidden" | "forbidden":
            said = f"{have} {constraint.value}, which is forbidden{behind}"
        case "inventory":
            said = f"{have} no {constraint.resource_class}{behind}"
        case "in_tree":
            said = f"{are} not the host of {constraint.value}{behind}"
        case "member_of" if len(names) == 1:
            said = f"{are} not in aggregate {names[0]}{behind}"
        case "member_of":
            said = (
                f"{are} in none of the {len(names)} aggregates that were named{behind}"
            )
        case "not_member_of":
            said = f"{are} in aggregate {constraint.value}, which is ruled out{behind}"
        case "required" if len(names) == 1:
            said = f"{lack} {names[0]}{behind}"
        case "required":
            said = f"{have} none of {joined(names)}{behind}"
        case "unit":
            said = f"{do} not give {_amount(constraint)} to one consumer{behind}"
        case "room":
            said = f"{have} less than {_amount(constraint)} free{behind}"
        case "together":
            said = f"{do} not have room for {_groups(constraint)} at the same time"
        case "isolate":
            said = f"{have} too few providers to give each group its own"
        case _:
            said = f"{do} not have {_groups(constraint)} in one subtree"
    return f"{count} {said}{_at_most(figures)}"


def _at_most(figures: Figures) -> str:
    if figures.smaller is None or figures.constraint.kind not in ("room", "unit"):
        return ""
    return f" ({figures.smaller.amount} at most)"


def summary(told: Report) -> str:
    """Return one to three sentences: how many hosts serve, and why others do not."""
    first = _first(told)
    out = [
        (each.before - each.after, each)
        for each in told.figures
        if each.before > each.after
    ]
    if not out:
        return first
    return f"{first} {_reasons(out, told)}"


def _first(told: Report) -> str:
    if told.hosts == 0:
        return "There are no hosts."
    if told.hosts == 1:
        does = "serves" if told.serves else "does not serve"
        return f"The only host {does} this request."
    if told.serves == 0:
        return f"None of {told.hosts} hosts serves this request."
    if told.serves == told.hosts:
        return f"All {told.hosts} hosts serve this request."
    serve = "serves" if told.serves == 1 else "serve"
    return f"{told.serves} of {told.hosts} hosts {serve} this request."


def _reasons(out: Sequence[tuple[int, Figures]], told: Report) -> str:
    """Return the reasons, each with those that are kept out by it first."""
    head, *rest = out
    reasons = [lacking(*head)]
    told_rest = rest[: MOST_REASONS - 1] if len(rest) > MOST_REASONS - 1 else rest
    left = head[1].after
    if rest:
        said = [lacking(*each) for each in told_rest]
        untold = sum(count for count, _ in rest[len(told_rest) :])
        if untold:
            verb = "fails" if untold == 1 else "fail"
            said.append(f"{untold} {verb} for other reasons")
        others = f"of the {left} others, " if left > 1 else "of the other, "
        reasons.append(others + joined(said))
    return f"{'; '.join(reasons)}."


def change(each: Change, told: Report) -> str:
    """Return what to do, and how many hosts serve then."""
    if len(each.dropped) == 1:
        less = _less(each.dropped[0], each.serves, told)
        if less:
            return less
    doing = [_doing(one) for one in each.dropped]
    return f"{joined(doing)}: {_serve(each.serves)}"


def _less(dropped: Constraint, most: int, told: Report) -> str | None:
    """Return which smaller amount will do, if one does instead of leaving it out."""
    if dropped.kind not in ("room", "inventory"):
        return None
    for figures in told.figures:
        room, smaller = figures.constraint, figures.smaller
        same = (room.suffix, room.resource_class) == (
            dropped.suffix,
            dropped.resource_class,
        )
        if same and room.kind == "room" and smaller:
            ask = (
                f"ask for {smaller.amount} {room.resource_class} instead of "
                f"{room.value}{group_of(room.suffix)}: {_serve(smaller.serves)}"
            )
            none = "for none" if dropped.kind == "inventory" else "for less: up to"
            return f"{ask}; {none} {most}" if most > smaller.serves else ask
    return None


def _serve(count: int) -> str:
    return f"{hosts(count)} {'serves' if count == 1 else 'serve'}"


def _doing(constraint: Constraint) -> str:
    """Return what it means to leave a constraint out."""
    behind = group_of(constraint.suffix)
    names = _names(constraint)
    match constraint.kind:
        case "root_required" | "required":
            wanted = joined(names, "or") or constraint.value
            return f"do without {wanted}{behind}"
        case "root_forbidden" | "forbidden":
            return f"put up with {constraint.value}{behind}"
        case "inventory":
            return f"do without {constraint.resource_class}{behind}"
        case "in_tree":
            return f"look at all hosts, not only that of {constraint.value}{behind}"
        case "member_of":
            named = "the aggregate" if len(names) == 1 else "the aggregates"
            return f"look outside {named} {joined(names, 'or')}{behind}"
        case "not_member_of":
            return f"look in aggregate {constraint.value} as well{behind}"
        case "unit":
            return f"ask for another amount than {_amount(constraint)}{behind}"
        case "room":
            return f"ask for less than {_amount(constraint)}{behind}"
        case "together":
            return f"ask for {_groups(constraint)} one by one"
        case "isolate":
            return "let groups share a provider (group_policy=none)"
    return f"do not ask for {_groups(constraint)} in one subtree"
