"""``placement-feed``: the command."""

import argparse
import urllib.parse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from placement_clients.client import Client
from placement_clients.errors import BadRequest
from placement_clients.feed import signature
from placement_clients.feed.forwarding import Forwarder, Gone
from placement_clients.feed.notification import Notifications
from placement_clients.feed.state import State
from placement_clients.feed.target import Lines, Refused, Target, Webhook
from placement_clients.option import add_options, parser_of, placement_of
from placement_clients.output import Unusable, complain, describe, read_text, run

PROGRAM = "placement-feed"
DONE, GONE, BAD_CALL, REFUSED = range(4)
# The forwarder sets these itself: given ones would return the same page for ever.
OURS = ("since", "wait")
DESCRIPTION = """\
Forward what changes in Placement: to standard output as lines of JSON, to a webhook as
CloudEvents, or as notifications of oslo.messaging. Every change is delivered at least
once, in order.
"""
EPILOG = """\
exit status:
  0  everything was delivered (with --once)
  1  the service does not know what has changed since the cursor
  2  wrong options, or a file that cannot be used
  3  the target refuses a change, or Placement cannot be used

examples:
  placement-feed --filter type=allocations
  placement-feed --webhook https://billing.example/placement --secret-file secret \\
      --state /var/lib/placement/billing.json --resync
  placement-feed --notify --config-file /etc/placement/feed.conf \\
      --state /var/lib/placement/notify.json
"""
STATE = {
    "--state FILE": "keep the cursor here; without it, begin with what changes from "
    "now on",
}
TARGETS = {
    "--webhook URL": "post each change there",
    "--notify": "send each change as a notification of oslo.messaging, as the section "
    "[oslo_messaging_notifications] of the configuration file says",
}
OTHERS = {
    "--transport-url URL": "the message broker for --notify, instead of the one in the "
    "file",
    "--secret-file FILE": "sign with the secret in this file, in base64, with or "
    "without whsec_",
    "--source SOURCE": "the source of the events; by default the URL of Placement",
    "--filter NAME=VALUE...": "forward only some changes, such as type=allocations; "
    "may be repeated",
    "--resync": "if the cursor is gone, send a journal.gap and go on",
    "--skip-refused": "leave out changes that the target refuses, instead of stopping",
    "--metrics FILE": "write counts there, for the textfile collector of Prometheus",
    "--once": "stop when everything is delivered",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    work = partial(_run, arguments)
    return run(PROGRAM, work, unusable=BAD_CALL, ends_with_reader=True)


def _run(arguments: Sequence[str] | None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        placement = placement_of(asked)
        forwarder = Forwarder(
            placement,
            _target(asked, placement),
            State(asked.state),
            lambda sentence: complain(PROGRAM, [sentence]),
            filters="&".join(asked.filter),
            resync=asked.resync,
            skip_refused=asked.skip_refused,
            metrics=asked.metrics,
        )
        forwarder.run(once=asked.once)
    except Gone as exc:
        complain(PROGRAM, [str(exc), "--resync goes on after a journal.gap"])
        return GONE
    except Refused as exc:
        complain(PROGRAM, [str(exc), "--skip-refused leaves such changes out"])
        return REFUSED
    except BadRequest as exc:
        raise Unusable(describe(exc)) from exc
    return DONE


def _target(asked: argparse.Namespace, placement: Client) -> Target:
    if asked.notify:
        return Notifications(asked.config_file, asked.transport_url)
    if not asked.webhook:
        return Lines()
    key = None
    if asked.secret_file:
        key = signature.parse_secret(read_text(asked.secret_file))
    return Webhook(asked.webhook, lambda: asked.source or placement.get_endpoint(), key)


def _filter(text: str) -> str:
    """Return a filter unchanged, if it is one."""
    for name, _ in urllib.parse.parse_qsl(text, keep_blank_values=True):
        if name in OURS:
            # This program says itself where it goes on.
            raise argparse.ArgumentTypeError(f"{name} is no filter")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(PROGRAM, DESCRIPTION, EPILOG)
    add_options(parser, STATE, {"--state": Path})
    add_options(parser.add_mutually_exclusive_group(), TARGETS)
    files = {"--secret-file": Path, "--metrics": Path}
    add_options(parser, OTHERS, {"--filter": _filter, **files})
    return parser
