"""Progress of a run: what it will make, tenths of its jobs, running jobs and failures.

This is a handler of Snakemake's log (``--logger dperm``). Jobs write to their own logs.
The last line of a running job's log shows its progress and is printed next to its name.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from snakemake.logging import DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from dperm.storage import files

IN_KEYS = "nothing"  # lines of progress
NAME = "dperm"
EVERY = 60.0  # seconds between lines on what is running
TAIL = 4000  # bytes at the end of a log that are read
SHOWN = 80  # characters of the last line of a running job
REASON = 600  # characters of the error of a job that failed
_ERROR = re.compile(r"[\w.]*(Error|Exception|Interrupt)\b.*:")
# before a count stands what the name says
_COUNT = re.compile(r"^.*?[:,] (?=\d+ )")
# Of Snakemake's error on a failed shell command, twenty lines with the command in it.
_STATUS = re.compile(
    r"CalledProcessError.*returned non-zero exit status (\d+)", re.DOTALL
)
SIGNALLED = 128  # a shell adds the number of the signal
# set by an interrupt: what ends then is no failure
silenced = threading.Event()
TERMINATED = (
    "dperm: terminated, when the running jobs have ended; the same command goes on "
    "from what is stored"
)
# Of Snakemake at the end of a run that failed, before it says so in another way
_REPEATED = "Exiting because a job execution failed"


class LogHandler(LogHandlerBase):
    """Shows the progress of a run; Snakemake calls it from one thread."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Start the thread that shows what is running."""
        failed = self.common_settings.show_failed_logs
        self.setFormatter(DefaultFormatter(show_failed_logs=failed))
        self.running: dict[int, tuple[str, list[str]]] = {}
        self.count = ""
        self.tenth = 0
        self.finished = ""
        self.ended = threading.Event()
        threading.Thread(target=self._states, daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record if a reader needs it."""
        event = getattr(record, "event", None)
        fields = vars(record)
        if silenced.is_set():
            return
        if event == LogEvent.RUN_INFO:
            say(plan(fields["stats"]))
        elif event == LogEvent.JOB_INFO:
            names = [
                fields["rule_name"],
                *map(str, fields["wildcards"].values()),
            ]
            self.running[fields["jobid"]] = (
                " ".join(names),
                fields["log"] or [],
            )
        elif event == LogEvent.JOB_FINISHED:
            self.finished = self.running.pop(fields["job_id"], ("", []))[0]
        elif event == LogEvent.PROGRESS:
            self.count = f"[{fields['done']}/{fields['total']}] "
            tenth = 10 * fields["done"] // fields["total"]
            if tenth > self.tenth:
                self.tenth = tenth
                say(f"{self.count}{self.finished}")
        elif event == LogEvent.JOB_ERROR:
            logs = fields["log"] or []
            unknown = (fields["rule_name"], logs)
            name, _ = self.running.pop(fields["jobid"], unknown)
            # of a group all jobs are named, also those that did not fail
            if error_in(logs) or not fields["indent"]:
                say(failure(name, logs, fields["rule_msg"]))
        elif event == LogEvent.GROUP_ERROR:
            logs = fields["aux_logs"] or []
            say(failure(f"group {fields['groupid']}", logs))
        elif record.levelno >= logging.WARNING:
            text = self.format(record)
            ended = _STATUS.search(text)
            if ended is None and _REPEATED not in text:
                say(text)
            elif ended and int(ended[1]) > SIGNALLED:  # else its log said why
                say(killed(int(ended[1])))
        elif event is None and "Nothing to be done" in str(record.msg):
            say(str(record.msg))
        elif event is None and "Will exit after" in str(record.msg):
            say(TERMINATED)
            silenced.set()

    def close(self) -> None:
        """End the thread that shows what is running."""
        self.ended.set()
        super().close()

    def _states(self) -> None:
        while not (self.ended.wait(EVERY) or silenced.is_set()):
            if states := [state(*job) for job in list(self.running.values())]:
                clock = time.strftime("%H:%M")
                say(f"{clock} {self.count}running: {'; '.join(states)}")


def failure(name: str, logs: list[str], message: str | None = None) -> str:
    """What is said of a job that failed: the error in its log, and where that is.

    ``message`` is what a cluster says of it.
    """
    reason = error_in(logs) or "".join(last_lines(logs)[-1:])
    text = ": ".join(filter(None, [f"{name} failed", message, reason]))
    return f"{text} (all of it in {', '.join(logs)})" if logs else text


def error_in(logs: list[str]) -> str:
    """The last error in a log with the lines that follow it; empty if none."""
    lines = last_lines(logs)
    begins = [place for place, line in enumerate(lines) if _ERROR.match(line)]
    return "; ".join(lines[begins[-1] :])[:REASON] if begins else ""


def killed(status: int) -> str:
    """What an exit status of a job's shell above ``SIGNALLED`` says."""
    number = status - SIGNALLED
    names = {member.value: member.name for member in signal.Signals}
    text = f"the job was killed by signal {number} ({names.get(number, 'unknown')})"
    if number == signal.SIGKILL:
        text += ": out of memory? run with fewer jobs (-j)"
    return text


def say(text: str) -> None:
    """Print a line for whoever watches the run."""
    print(text, file=sys.stderr, flush=True)


def plan(counts: Mapping[str, int]) -> str:
    """What a run will make: jobs by stage, and the CPU time that all papers took."""
    stages = Counter[str]()
    for name, count in counts.items():
        # each drawing is a rule of its own
        stages["draw" if name.startswith("draw_") else name] += count
    del stages["total"]
    total = stages.total()
    by_stage = ", ".join(f"{count} {name}" for name, count in stages.items())
    text = f"{total} job{'s' * (total != 1)} to run: {by_stage}"
    manifest = files.known_json(Path("results", "manifest.json")) or {}
    if spent := manifest.get("cpu_seconds"):
        text += f" (all papers took {sum(spent.values()):,.0f} CPU s)"
    return text


def state(name: str, logs: list[str]) -> str:
    """A job's name with the last line of its log, if there is one."""
    lines = last_lines(logs)
    return f"{name} ({_COUNT.sub('', lines[-1])[:SHOWN]})" if lines else name


def last_lines(logs: list[str]) -> list[str]:
    """The last lines of a log, without empty ones; none if there is no log."""
    try:
        text = Path(logs[0]).read_bytes()[-TAIL:].decode(errors="replace")
    except (OSError, IndexError):
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]


def register() -> None:
    """Make ``--logger dperm`` known to Snakemake in this process."""
    LoggerPluginRegistry().register_plugin(NAME, sys.modules[__name__])
