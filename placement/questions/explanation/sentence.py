"""An explanation in words, for a reader who has little time.

All sentences are here. They name things and count hosts, and are correct in the
singular, too.
"""

from collections.abc import Sequence

from placement.questions.explanation.constraint import Constraint
from placement.questions.explanation.report import Change, Figures, Report

# How many reasons, and how many groups, are given one by one.
MOST_REASONS = 3
MOST_NAMED = 5


def hosts(count: int) -> str:
    """Return a number of hosts in words."""
    return f"{count} host" if count == 1 else f"{count} hosts"


def joined(words: Sequence[str], last: str = "and") -> str:
    """Join words as in speech: a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def group_of(suffix: str | None) -> str:
    """Return the phrase that names a group at the end of a clause, if it has a name."""
    return f" for group {suffix}" if suffix else ""


def _names(constraint: Constraint) -> tuple[str, ...]:
    return constraint.value if isinstance(constraint.value, tuple) else ()


def _groups(constraint: Constraint) -> str:
    """Return the names of groups as a phrase: groups 1 and 2."""
    named = [suffix or "without suffix" for suffix in _names(constraint)]
    if len(named) > MOST_NAMED:
        named[MOST_NAMED - 1 :] = [f"{len(named) - MOST_NAMED + 1} more"]
    return f"group {named[0]}" if len(named) == 1 else f"groups {joined(named)}"


def _amount(constraint: Constraint) -> str:
    return f"{constraint.value} {constraint.resource_class}"


def text(constraint: Constraint) -> str:
    """Return a constraint as a sentence without a full stop."""
    behind = group_of(constraint.suffix)
    serves = f"serves group {constraint.suffix}" if constraint.suffix else "serves"
    names = joined(_names(constraint), "or")
    match constraint.kind:
        case "root_required":
            return f"the host itself has {constraint.value}"
        case "root_forbidden":
            return f"the host itself does not have {constraint.value}"
        case "inventory":
            return f"there is {constraint.resource_class}{behind}"
        case "in_tree":
            return f"what {serves} is in the tree of {constraint.value}"
        case "member_of":
            return f"what {serves} is in aggregate {names}"
        case "not_member_of":
            return f"what {serves} is not in aggregate {constraint.value}"
        case "required":
            return f"one provider that {serves} has {names}"
        case "forbidden":
            return f"no provider that {serves} has {constraint.value}"
        case "unit":
            return f"one consumer may have {_amount(constraint)}{behind}"
        case "room":
            are = "is" if constraint.value == 1 else "are"
            return f"{_amount(constraint)} {are} free{behind}"
        case "together":
            return f"one host serves {_groups(constraint)} at the same time"
        case "isolate":
            return "each group with a suffix has a provider of its own"
    return f"{_groups(constraint)} are served from one subtree"


def _lack(figures: Figures, told: Report, *, plural: bool) -> str:
    """Return what the hosts that a constraint keeps out lack, as a predicate."""
    constraint = figures.constraint
    have, lack, are = ("have", "lack", "are") if plural else ("has", "lacks", "is")
    behind = group_of(constraint.suffix)
    names = _names(constraint)
    match constraint.kind:
        case "root_required":
            return f"{lack} {constraint.value}"
        case "root_forbidden" | "forbidden":
            return f"{have} {constraint.value}, which is forbidden{behind}"
        case "inventory":
            classes = joined(_classes_so_far(constraint, told))
            provider = "provider with " if " and " in classes else ""
            return f"{have} no {provider}{classes}{behind}"
        case "in_tree":
            belong = "belong" if plural else "belongs"
            return f"{belong} to another tree than that of {constraint.value}{behind}"
        case "member_of" if len(names) == 1:
            return f"{are} outside aggregate {names[0]}{behind}"
        case "member_of":
            return f"{are} outside the {len(names)} aggregates that were named{behind}"
        case "not_member_of":
            return f"{are} in aggregate {constraint.value}, which is ruled out{behind}"
        case "required" if constraint.suffix:
            return f"{have} no provider with {joined(names, 'or')}{behind}"
        case "required" if len(names) == 1:
            return f"{lack} {names[0]}"
        case "required":
            return f"{have} none of {joined(names)}"
        case "unit":
            refuse = "refuse" if plural else "refuses"
            return f"{refuse} {_amount(constraint)} to one consumer{behind}"
        case "room":
            return f"{have} less than {_amount(constraint)} free{behind}"
        case "together":
            return f"{lack} room for {_groups(constraint)} at the same time"
        case "isolate":
            return f"{have} too few providers to give each group its own"
    return f"{have} no subtree for {_groups(constraint)}"


def _classes_so_far(constraint: Constraint, told: Report) -> list[str]:
    """Return the classes that one provider must have once a class is considered.

    The group without suffix takes them from any provider.
    """
    classes = []
    for figures in told.figures:
        other = figures.constraint
        if other.kind == "inventory" and other.suffix == constraint.suffix:
            classes.append(str(other.resource_class))
            if other == constraint:
                break
    return classes if constraint.suffix else classes[-1:]


def _remark(figures: Figures, told: Report) -> str:
    """Return the smaller amount that would do, in brackets, if it says anything new."""
    if figures.smaller is None or told.serves:
        return ""
    if figures.constraint.kind == "room":
        return f" ({figures.smaller.amount} at most)"
    return f" ({figures.smaller.amount} would do)"


def summary(told: Report) -> str:
    """Return one to three sentences: how many hosts serve, and why others do not."""
    out = [each for each in told.figures if each.before > each.after]
    if not out:
        return _first(told)
    head, *rest = out
    reasons = [_clause(head, told, _first_subject(head, told))]
    if len(rest) == 1:
        reasons.append(_clause(rest[0], told, _last_subject(rest[0])))
    elif rest:
        reasons.append(_others(head.after, rest, told))
    return f"{_first(told)} {'; '.join(reasons)}."


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


def _out(figures: Figures) -> int:
    return figures.before - figures.after


def _clause(figures: Figures, told: Report, subject: str) -> str:
    plural = _out(figures) > 1
    return f"{subject} {_lack(figures, told, plural=plural)}{_remark(figures, told)}"


def _first_subject(figures: Figures, told: Report) -> str:
    if told.hosts == 1:
        return "It"
    return f"All {told.hosts}" if figures.after == 0 else str(_out(figures))


def _last_subject(figures: Figures) -> str:
    """Return the subject of the only further reason: all hosts left, or some."""
    if figures.before == 1:
        return "the other"
    if figures.after == 0:
        return f"the {figures.before} others"
    return f"of the {figures.before} others, {_out(figures)}"


def _others(left: int, rest: Sequence[Figures], told: Report) -> str:
    named = rest[: MOST_REASONS - 1]
    said = [_clause(each, told, str(_out(each))) for each in named]
    untold = sum(_out(each) for each in rest[len(named) :])
    if untold:
        said.append(f"{untold} {'fails' if untold == 1 else 'fail'} for other reasons")
    return f"of the {left} others, {joined(said)}"


def change(each: Change, told: Report) -> str:
    """Return what to change, and how many hosts serve then."""
    if len(each.dropped) == 1:
        less = _less(each.dropped[0], each.serves, told)
        if less:
            return less
    return f"{_doing_all(each.dropped)}: {_serve(each.serves)}"


def _doing_all(dropped: Sequence[Constraint]) -> str:
    """Return what to change, with everything to do without in one phrase."""
    without = [one for one in map(_without, dropped) if one]
    doing = [f"do without {joined(without)}"] if without else []
    return joined([*doing, *(_doing(each) for each in dropped if not _without(each))])


def _without(constraint: Constraint) -> str:
    """Return what to do without if a constraint is left out, if that is a thing."""
    behind = group_of(constraint.suffix)
    match constraint.kind:
        case "root_required":
            return str(constraint.value)
        case "required":
            return f"{joined(_names(constraint), 'or')}{behind}"
        case "inventory":
            return f"{constraint.resource_class}{behind}"
    return ""


def _less(dropped: Constraint, most: int, told: Report) -> str | None:
    """Return the smaller amount to ask for instead, if one will do."""
    if dropped.kind not in ("room", "inventory"):
        return None
    alone = {each.dropped for each in told.changes or ()}
    for figures in told.figures:
        room, smaller = figures.constraint, figures.smaller
        same = (room.suffix, room.resource_class) == (
            dropped.suffix,
            dropped.resource_class,
        )
        if same and room.kind == "room" and smaller:
            if dropped.kind == "inventory" and (room,) in alone:
                # The report has said that already.
                return None
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
        case "root_forbidden" | "forbidden":
            return f"put up with {constraint.value}{behind}"
        case "in_tree":
            return f"look at all hosts, not only that of {constraint.value}{behind}"
        case "member_of":
            named = "aggregate" if len(names) == 1 else "aggregates"
            return f"look outside {named} {joined(names)}{behind}"
        case "not_member_of":
            return f"look in aggregate {constraint.value} as well{behind}"
        case "unit":
            return f"ask for an amount other than {_amount(constraint)}{behind}"
        case "room" if constraint.value == 1:
            return f"make room for {_amount(constraint)}{behind}"
        case "room":
            return f"ask for less than {_amount(constraint)}{behind}"
        case "together":
            return f"ask for {_groups(constraint)} one by one"
        case "isolate":
            return "let groups share a provider (group_policy=none)"
    return f"do not ask for {_groups(constraint)} in one subtree"
