"""An explanation in words, for a reader who has little time.

All sentences are here; the words for a constraint are its own. They name things and
count hosts, are correct in the singular, too, and are true word for word: a request for
an offer yields just that.
"""

from collections.abc import Sequence

from placement.model.constraint import Constraint, group_of, joined
from placement.questions.explanation.finding import Verdict
from placement.questions.explanation.reason import Reason
from placement.questions.explanation.relaxation import target_of
from placement.questions.explanation.report import QueryChange, Report
from placement.questions.explanation.smaller import Offer

# With more reasons than this, the one of the hosts that came furthest is given first.
MOST_REASONS = 3


def hosts(count: int) -> str:
    """Return a number of hosts in words."""
    return f"{count} host" if count == 1 else f"{count} hosts"


def summary(report: Report) -> str:
    """Return one to three sentences: how many hosts serve, and why others do not."""
    reasons = report.reasons
    if not reasons:
        return _first(report)
    if len(reasons) <= MOST_REASONS:
        return f"{_first(report)} {_chain(reasons, report)}."
    furthest = f"{_furthest(reasons[-1])} {_predicate(reasons[-1])}."
    return f"{_first(report)} {furthest} Before, {_chain(reasons[:-1], report)}."


def _furthest(reason: Reason) -> str:
    if reason.before == 1:
        return "The one that came furthest"
    if reason.out == reason.before:
        return f"The {reason.before} that came furthest"
    return f"Of the {reason.before} that came furthest, {reason.out}"


def _chain(reasons: Sequence[Reason], report: Report) -> str:
    """Return the reasons in their order, each about the hosts that are left."""
    head, *rest = reasons
    said = [f"{_first_subject(head, report)} {_predicate(head)}"]
    said += [f"{_next_subject(each)} {_predicate(each)}" for each in rest]
    return "; ".join(said)


def _first(report: Report) -> str:
    if report.hosts == 0:
        return "There are no hosts."
    if report.hosts == 1:
        does = "serves" if report.serves else "does not serve"
        return f"The only host {does} this request."
    if report.serves == 0:
        return f"None of {report.hosts} hosts serves this request."
    if report.serves == report.hosts:
        return f"All {report.hosts} hosts serve this request."
    serve = "serves" if report.serves == 1 else "serve"
    return f"{report.serves} of {report.hosts} hosts {serve} this request."


def _predicate(reason: Reason) -> str:
    if not reason.is_plain:
        return f"cannot serve so that {reason.constraint.text()}"
    lack = reason.constraint.lack(plural=reason.out > 1)
    remarks = f" ({'; '.join(reason.remarks)})" if reason.remarks else ""
    return f"{lack}{remarks}"


def _first_subject(reason: Reason, report: Report) -> str:
    if report.hosts == 1:
        return "It"
    return f"All {report.hosts}" if reason.out == reason.before else str(reason.out)


def _next_subject(reason: Reason) -> str:
    """Return the subject of a further reason: all hosts left, or some."""
    if reason.before == 1:
        return "the other"
    if reason.out == reason.before:
        return f"the {reason.before} others"
    return f"of the {reason.before} others, {reason.out}"


def change(each: QueryChange) -> str:
    """Return the change to make, and how many hosts serve then."""
    serves = each.offer.serves if each.offer else each.serves
    return f"{_doing_all(each.dropped, each.offer)}: {_serve(serves)}"


def _doing_all(dropped: Sequence[Constraint], offer: Offer | None) -> str:
    """Return the change to make, with everything to do without in one phrase."""
    swaps = offer.swaps if offer else ()
    changed = {(swap.suffix, swap.resource_class) for swap in swaps}
    others = [each for each in dropped if target_of(each) not in changed]
    without = [thing for thing in (each.thing() for each in others) if thing]
    doing = [f"do without {joined(without)}"] if without else []
    doing += [each.instead() for each in others if not each.thing()]
    asking = [
        f"{swap.amount} {swap.resource_class} instead of {swap.asked}"
        f"{group_of(swap.suffix)}"
        for swap in swaps
    ]
    if asking:
        doing.append(f"ask for {joined(asking)}")
    return joined(doing)


def _serve(count: int) -> str:
    return f"{hosts(count)} {'serves' if count == 1 else 'serve'}"


def unmet(verdict: Verdict) -> str:
    """Return what one host lacks, as a predicate, with what it has instead."""
    constraint, closest = verdict.constraint, verdict.closest
    if verdict.meeting or not closest:
        return f"cannot serve so that {constraint.text()}"
    return f"{constraint.lack_of_one()}{constraint.instead_has(closest)}"
