"""Run a job of the Snakefile and write what it cost: ``launch.py METER STAGE ...``.

This is a script of the standard library alone, so that it starts in ten milliseconds.
The job is a process of its own. It is forked by the server of warm workers
(``dperm.workflow.warm``) if one listens where the environment variable ``DPERM_WARM``
says, and is started as ``python -P -m dperm STAGE`` otherwise.

The file METER is written when the job has ended, whole or not at all. It holds
``cpu_seconds`` of the job, of the children that it waited for and of this script, as
the operating system counted them; ``wall_seconds``; ``peak_mb``, the largest memory of
a process; ``threads``; and what the stage noted itself (``dperm.experiments.meter``).
The exit code is that of the job, or 128 and the number of the signal that ended it.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import time

SERVER = "DPERM_WARM"  # environment variable: the socket of the server
METER = "DPERM_METER"  # environment variable: the file that a stage adds its notes to
ACCEPTED = b"+"  # first byte of an answer: the server has forked the job
# Held back while a Python starts, which would print a traceback.
CTRL_C = {signal.SIGINT}
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(meter, words):
    """Run the job; returns its exit code."""
    started = time.monotonic()
    # The job ends itself on Ctrl-C. A handler, unlike SIG_IGN, is not inherited by it.
    signal.signal(signal.SIGINT, lambda *_: None)
    remove(meter)
    environment = {
        **os.environ,
        METER: meter,
        **dict.fromkeys(ONE_THREAD, "1"),
    }
    cost = forked(words, environment) or spawned(words, environment)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cost["cpu_seconds"] += usage.ru_utime + usage.ru_stime
    cost["wall_seconds"] = time.monotonic() - started
    status = cost.pop("status")
    if status < 0:
        name = signal.Signals(-status).name
        print(
            f"dperm: {words[0]}: the job was ended by {name}", file=sys.stderr
        )
        status = 128 - status
    write(meter, {**noted(meter), **cost, "threads": threads(words)})
    return status


def forked(words, environment):
    """Have the server fork the job; returns its cost, or None where no server is."""
    path = environment.pop(SERVER, None)
    if path is None:
        return None
    request = {
        "words": words,
        "folder": os.getcwd(),
        "environment": environment,
    }
    message = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
            socket.send_fds(
                connection, [len(message).to_bytes(8, "big")], [0, 1, 2]
            )
            connection.sendall(message)
            if connection.recv(1) != ACCEPTED:
                return None
        except OSError:
            return None
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    if not answer:
        print("dperm: the server of warm workers was ended", file=sys.stderr)
        return {"status": -signal.SIGKILL, "cpu_seconds": 0.0, "peak_mb": 0.0}
    return json.loads(answer)


def spawned(words, environment):
    """Run the job as a command of its own; returns its cost."""
    command = [sys.executable, "-P", "-m", "dperm", *words]
    process = os.posix_spawn(
        command[0], command, environment, setsigmask=CTRL_C
    )
    signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
    _, status, used = os.wait4(process, 0)
    return cost_of(status, used)


def cost_of(status, used):
    """What a process cost that was waited for by ``os.wait4``."""
    return {
        "status": os.waitstatus_to_exitcode(status),
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": round(used.ru_maxrss / 1024, 1),
    }


def threads(words):
    """The number of threads that the words of a stage ask for."""
    asked = [
        word.partition("=")[2] for word in words if word.startswith("workers=")
    ]
    return int(asked[-1]) if asked else 1


def noted(meter):
    """What the stage wrote into the file itself."""
    try:
        with open(meter, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def write(meter, numbers):
    """Write the file; a job whose cost cannot be written has not failed."""
    beside = f"{meter}.{os.getpid()}"
    rounded = {
        name: round(number, 4) if isinstance(number, float) else number
        for name, number in numbers.items()
    }
    try:
        os.makedirs(os.path.dirname(meter) or ".", exist_ok=True)
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(rounded, file, indent=1, sort_keys=True)
        os.replace(beside, meter)
    except OSError as error:
        print(f"dperm: {meter} cannot be written: {error}", file=sys.stderr)
        remove(beside)


def remove(path):
    """Remove a file that may not be there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[2:])
    sys.stderr.flush()
    os._exit(status)  # what Python does at its end would not be counted
