"""Warm workers: a server that has imported the package forks a process for each job.

Starting Python and importing pandas, Numba and the package takes longer than most jobs
of a run. The Snakefile starts the server (``start``); ``dperm.experiments.launch`` asks
it for a job. The job gets the asker's folder, environment and streams, and behaves as
the command of its own that it replaces: a failure, a kill, Ctrl-C and a full disk end
it in the same way. If the asker is killed, its job is ended too.

The server computes nothing, and refuses to serve if a library has started a thread,
because a fork copies only one. It ends when the process that started it has ended, and
no job runs any more.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from dperm.experiments import launch

THREADS = Path("/proc/self/task")  # one entry for each thread of this process
# of its own jemalloc
ARROW = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
# Besides the modules of the stages: what these import when they are called.
LIBRARIES = (
    "dperm.config.run_spec",
    "dperm.experiments.checks",
    "dperm.plotting.drawing",
    "filelock",
    "pyarrow.parquet",
    "scipy.stats",
    "threadpoolctl",
    "tqdm",
)
# Arguments of Python that start the server; the number of the socket follows.
COMMAND = ("-P", "-m", "dperm", "--warm-workers")
_RUNNING: list[Server] = []  # of this process: one, or none


class Server:
    """The server as the process sees it that started it."""

    def __init__(self) -> None:
        """Start the server; jobs may ask at once.

        Raises OSError if it cannot be started.
        """
        self.folder = tempfile.mkdtemp(prefix="dperm-")
        path = str(Path(self.folder, "jobs"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1024)
            number = listener.fileno()
            command = [sys.executable, *COMMAND, str(number)]
            # Python prints a traceback if Ctrl-C comes while it starts
            before = signal.pthread_sigmask(signal.SIG_BLOCK, launch.CTRL_C)
            try:
                # The server reads the pipe to learn that this process has ended.
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    pass_fds=[number],
                    env=_environment(),
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.environ[launch.SERVER] = path

    def stop(self) -> float:
        """End the server when its last job has ended; returns its own CPU seconds."""
        os.environ.pop(launch.SERVER, None)
        cpu_seconds = float(self.process.communicate()[0] or 0.0)
        shutil.rmtree(self.folder, ignore_errors=True)
        return cpu_seconds


def start() -> None:
    """Start the server of this process, unless jobs have to start by themselves here.

    That is so on another system than Linux, and where the jobs' ``python`` is not this
    one.
    """
    python = shutil.which("python")
    is_same = python and Path(python).parent == Path(sys.executable).parent
    if is_same and hasattr(os, "pidfd_open") and THREADS.exists():
        with suppress(OSError):
            _RUNNING.append(Server())


def stop() -> float:
    """End the server of this process; returns its CPU seconds, without its jobs'."""
    return sum(_RUNNING.pop().stop() for _ in [*_RUNNING])


def _environment() -> dict[str, str]:
    """The environment of this process, and variables that stop libraries' threads."""
    path = os.pathsep.join(
        filter(None, [_source(), os.environ.get("PYTHONPATH")])
    )
    one_thread = {**dict.fromkeys(launch.ONE_THREAD, "1"), **ARROW}
    return {**os.environ, **one_thread, "PYTHONPATH": path}


def _source() -> str:
    return str(Path(__file__).parents[2])


# --- the server's own process ---------------------------------------------------------


def serve(
    number: int, command: Callable[[], None], modules: Iterable[str]
) -> NoReturn:
    """Fork a process for each job that is asked for, until standard input ends.

    It says what it cost and is gone: to give back what was imported, module by module,
    would take longer than a job, and nobody would count it.

    Parameters
    ----------
    number : int
        File descriptor of the socket at which jobs are asked for.
    command : callable
        What a job runs: the ``dperm`` command.
    modules : iterable of str
        Modules that are imported before the first fork, with what they need.
    """
    interrupt = signal.getsignal(signal.SIGINT)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # they are meant for the jobs
    signal.pthread_sigmask(signal.SIG_UNBLOCK, launch.CTRL_C)
    listener = socket.socket(fileno=number)
    _import(modules)
    if len(list(THREADS.iterdir())) > 1:
        sys.exit()  # askers find a closed connection and start their jobs themselves
    gc.freeze()  # what was imported is not copied by a collection in a job
    poll = select.poll()
    jobs = dict[int, ForkedJob]()
    poll.register(listener, select.POLLIN)
    poll.register(0, select.POLLIN)
    is_open = True
    while is_open or jobs:
        for number, _ in poll.poll():
            if number == 0:
                is_open = False
                poll.unregister(0)
                poll.unregister(listener)
                listener.close()
            elif number == listener.fileno():
                job = ForkedJob(listener, interrupt, command)
                for watched in (job.process, job.connection.fileno()):
                    jobs[watched] = job
                poll.register(job.process, select.POLLIN)
                # tells only that the asker has gone
                poll.register(job.connection, 0)
            elif number in jobs and number == jobs[number].process:
                job = jobs.pop(number)
                if jobs.pop(job.connection.fileno(), None):
                    poll.unregister(job.connection)
                poll.unregister(number)
                job.answer()
            elif number in jobs:
                poll.unregister(number)
                jobs.pop(number).kill()
    with suppress(BrokenPipeError):  # who started the server was killed
        os.write(1, str(time.process_time()).encode())
    os._exit(0)


def _import(modules: Iterable[str]) -> None:
    for name in (*LIBRARIES, *modules):
        importlib.import_module(name)


class ForkedJob:
    """A job that was asked for, and its process."""

    def __init__(
        self,
        listener: socket.socket,
        interrupt: Any,
        command: Callable[[], None],
    ):
        """Accept a connection and fork; the new process reads what is asked for."""
        self.connection, _ = listener.accept()
        self.pid = os.fork()
        if self.pid == 0:
            descriptor = self.connection.fileno()
            # the listener, and what other askers wait at
            os.closerange(3, descriptor)
            os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
            signal.signal(signal.SIGINT, interrupt)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            _job(self.connection, command)
        self.process = os.pidfd_open(self.pid)

    def kill(self) -> None:
        """End the process, because nobody waits for it any more."""
        signal.pidfd_send_signal(self.process, signal.SIGTERM)

    def answer(self) -> None:
        """Tell the asker what the process cost."""
        _, status, used = os.wait4(self.pid, 0)
        os.close(self.process)
        with suppress(OSError):  # the asker was killed
            self.connection.sendall(
                json.dumps(launch.cost_of(status, used)).encode()
            )
        self.connection.close()


def _job(connection: socket.socket, command: Callable[[], None]) -> NoReturn:
    """Run what a connection asks for in this process, and end it."""
    code = 1
    try:
        with connection:
            request = _request(connection)
            os.chdir(request["folder"])
            connection.sendall(launch.ACCEPTED)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = ["dperm", *request["words"]]
        code = _code_of(command)
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _request(connection: socket.socket) -> dict[str, Any]:
    """Read a request and take over its streams."""
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with connection.makefile("rb") as file:
        return json.loads(file.read(int.from_bytes(head, "big")))


def _code_of(command: Callable[[], None]) -> int:
    """Run the command and return its exit code, as Python's own end would."""
    try:
        command()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
    return 0
