"""``placement-nodes-sync``: the agent that copies nodes to Placement."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from placement_clients import access
from placement_clients.access import Access, Misconfigured
from placement_clients.client import Client
from placement_clients.option import add_options
from placement_foundation import option
from placement_foundation.http import monitoring
from placement_foundation.observing import metrics
from placement_foundation.observing.log import set_up_logging
from placement_foundation.serving import command, completion, pipe, side
from placement_foundation.serving.terminal import visible
from placement_nodes import conf, measure
from placement_nodes.sync import memory
from placement_nodes.sync.agent import Agent, Caution, Tally
from placement_nodes.sync.bare_metal import BareMetal, Unreadable
from placement_nodes.sync.report import Report

LOG = log.getLogger(__name__)

PROGRAM = "placement-nodes-sync"
# Exit codes other than 0: some nodes could not be copied to Placement; the agent cannot
# start; the nodes could not be read.
SOME_FAILED, UNUSABLE, UNREADABLE = 1, 2, 3
OPTIONS = {
    "--once": "make one pass, and exit",
    "--interval SECONDS": "pause between two passes ([sync] interval)",
    "--node NODE": "copy only this node: its UUID or its name",
    "--remove-many": "remove the providers of nodes that are missing in two passes, "
    "although they are many, or all ([sync] removed_at_once)",
    "--dry-run": "print what would be done, do nothing, and exit",
    "--nodes-url URL": "URL of the node service ([baremetal])",
    "--placement-url URL": "URL of Placement ([placement])",
    "--placement-token TOKEN": "token to send to the Placement at that URL "
    "([placement])",
}

_printing = threading.Lock()


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy nodes to Placement, once or repeatedly; return the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        config = _configure(asked)
        nodes = BareMetal(_way(config, "baremetal", asked.nodes_url))
        placement = Client(
            _way(config, "placement", asked.placement_url, asked.placement_token)
        )
        with memory.opened(_state_file(config)) as providers:
            stop = _stopped_by_signals()
            report = Report(config.sync.interval)
            agent = Agent(
                nodes,
                placement,
                providers,
                say=_print_line,
                parallel=config.sync.parallel,
                dry=asked.dry_run,
                stopped=stop.is_set,
                heard=report.heard,
                caution=Caution(
                    config.sync.removed_at_once,
                    config.sync.removal_quiet_time,
                    asked.remove_many,
                ),
            )
            if asked.once or asked.dry_run:
                return _run_once(agent, asked.node)
            _publish(config, report)
            _run(agent, asked.node, config.sync.interval, stop, report)
            return 0
    except (cfg.Error, OSError, ValueError, Misconfigured, memory.Unusable) as exc:
        command.complain(PROGRAM, exc)
        return UNUSABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Copy the nodes of a bare metal service to Placement: a resource "
        "provider for each, with its resource class and its traits. The exit code is "
        f"{SOME_FAILED} if some nodes could not be copied, {UNUSABLE} if the "
        f"agent could not start, and {UNREADABLE} if the nodes could not be read.",
    )
    completion.add(parser)
    add_options(parser, OPTIONS, {"--interval": int})
    command.add_config_file(parser, conf.PROJECT)
    return parser


def _configure(asked: argparse.Namespace) -> cfg.ConfigOpts:
    files = asked.config_file or option.list_files(os.environ, conf.PROJECT)
    config = option.read(conf.PROJECT, conf.register_sync, files)
    if asked.interval is not None:
        try:
            config.set_override("interval", asked.interval, "sync")
        except ValueError as exc:
            raise ValueError(f"--interval {asked.interval}: {exc}") from exc
    set_up_logging(config, conf.PROJECT)
    return config


def _way(
    config: cfg.ConfigOpts, group: str, url: str | None, token: str | None = None
) -> Access:
    """Return the access to a service: to a given URL, or as configured.

    :raises ValueError: there is a token, but not where to send it
    """
    if token and not url:
        raise ValueError(f"--{group}-token needs --{group}-url")
    way = (
        access.from_environment({}, url=url, token=token)
        if url
        else access.from_config(config, group, conf.SERVICES[group])
    )
    way.keep_open(config.sync.parallel)
    return way


def _print_line(text: str) -> None:
    """Print a line at once. Threads that print do not mix their lines.

    If it cannot be printed, the work goes on all the same.
    """
    with _printing:
        try:
            with pipe.dropping_the_rest():
                print(visible(text), flush=True)
        except OSError as exc:
            LOG.error("nothing can be printed any more: %s", exc)


def _state_file(config: cfg.ConfigOpts) -> Path:
    if config.sync.state_file:
        return Path(config.sync.state_file).expanduser()
    directory = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(directory, conf.PROJECT, "providers.json")


def _stopped_by_signals() -> threading.Event:
    """Return an event set by signals, to stop the agent after the current node."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _run_once(agent: Agent, node: str | None) -> int:
    try:
        tally = _pass(agent, node)
    except Unreadable as exc:
        LOG.error("nothing was done: %s", exc)
        return UNREADABLE
    _print_line(str(tally))
    return SOME_FAILED if tally.failed else 0


def _publish(config: cfg.ConfigOpts, report: Report) -> None:
    """Serve the pages for monitoring, if they are wanted.

    :raises OSError: their address is taken, or does not belong to this machine
    """
    if config.sync.monitoring_address:
        metrics.switch_on(measure.SYNC_PREFIX, measure.SYNC_MEASURES)
        checks = {"nodes": report.reads_nodes, "placement": report.reaches_placement}
        pages = monitoring.probes(checks)
        pages[monitoring.METRICS] = monitoring.Page(
            lambda: monitoring.Text(metrics.render(), media_type=metrics.MEDIA_TYPE)
        )
        side.serve_pages(config.sync.monitoring_address, pages)


def _run(
    agent: Agent,
    node: str | None,
    interval: int,
    stop: threading.Event,
    report: Report,
) -> None:
    """Make passes until stopped; a failure in one may be gone in the next."""
    while not stop.is_set():
        try:
            tally = _pass(agent, node)
            LOG.info("%s", tally)
            report.made(tally)
        except Unreadable as exc:
            LOG.error("this pass is skipped, the next is in %s s: %s", interval, exc)
            report.skipped()
        except Exception:
            LOG.exception("this pass failed, the next is in %s s", interval)
            report.skipped()
        stop.wait(interval)


def _pass(agent: Agent, node: str | None) -> Tally:
    return agent.synchronise_all() if node is None else agent.synchronise_one(node)


if __name__ == "__main__":
    sys.exit(main())
