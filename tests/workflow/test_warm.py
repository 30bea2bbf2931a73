"""Jobs behave alike from a warm worker and as commands, and their cost is counted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from commands import python
from dperm.experiments import launch
from dperm.workflow import warm

# A server whose jobs run Python code: the first word after the name.
SERVER = """
import sys
from dperm.workflow import warm

warm.LIBRARIES = ()
warm.serve(int(sys.argv[1]), lambda: exec(sys.argv[1], {}), [])
"""
BURN = """
import os, time
def burn():
    while time.process_time() < 0.3: pass
child = os.fork()
burn()
if child == 0: os._exit(0)
os.wait()
"""
SLEEP = "import time, pathlib; pathlib.Path('begun').touch(); time.sleep(600)"


@pytest.fixture(scope="module")
def served():
    """The socket of a server, which can be interrupted even if these tests cannot."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm, "COMMAND", ("-P", "-c", SERVER))
        patch.setenv(launch.SERVER, "")
        server = warm.Server()
        path = os.environ[launch.SERVER]
    yield path
    signal.signal(signal.SIGINT, handler)
    server.stop()
    assert server.process.returncode == 0 and not Path(path).exists()


@pytest.fixture
def ask(served, tmp_path):
    """A function that begins a job of the server, in a folder of its own."""
    askers = []

    def begin(code, path=served):
        command = [
            sys.executable,
            "-I",
            "-S",
            launch.__file__,
            "logs/cost.json",
            code,
        ]
        environment = {
            **os.environ,
            launch.SERVER: path,
            "SPECIAL": "it's\nset",
        }
        asker = subprocess.Popen(
            [*command, "workers=3"], cwd=tmp_path, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        askers.append(asker)
        return asker

    yield begin
    for asker in askers:
        asker.terminate()
        asker.communicate()


def cost(folder):
    return json.loads((folder / "logs/cost.json").read_text())


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_cost_is_what_the_system_counted_of_the_job_and_its_children(
    ask, tmp_path
):
    job = ask(BURN)
    assert job.communicate()[1] == "" and job.returncode == 0
    spent = cost(tmp_path)
    assert 0.6 <= spent["cpu_seconds"] < 1.0 and spent["threads"] == 3
    assert spent["wall_seconds"] >= 0.3 and spent["peak_mb"] > 5


def test_notes_of_the_stage_are_kept_and_those_of_an_earlier_run_are_not(
    ask, tmp_path
):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/cost.json").write_text('{"rows": 5}')
    job = ask(
        "from dperm.experiments.meter import note; note(tasks=4); note(longest=2.5)"
    )
    assert job.communicate()[1] == ""
    spent = cost(tmp_path)
    assert (spent["tasks"], spent["longest"]) == (
        4,
        2.5,
    ) and "rows" not in spent


def test_folder_environment_and_streams_are_the_askers(ask, tmp_path):
    job = ask("import os; print(os.getcwd(), os.environ['SPECIAL'], input())")
    out, error = job.communicate("typed\n")
    assert (out, error) == (f"{tmp_path} it's\nset typed\n", "")


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('one line')", 1, "one line\n"),
        ("import atexit; atexit.register(print, 'end')", 0, ""),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os; os.kill(os.getpid(), 9)", 137, "the job was ended by SIGKILL\n"),
        ("import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (9, 9));"
         "open('f', 'wb', 0).write(bytes(9)); open('f', 'ab', 0).write(bytes(9))",
         1, "File too large\n"),
    ],
)  # fmt: skip
def test_a_job_ends_as_a_command_of_its_own(ask, tmp_path, code, status, said):
    job = ask(code)
    out, error = job.communicate()
    assert job.returncode == status and error.endswith(said)
    assert cost(tmp_path)["cpu_seconds"] > 0
    assert out == ("end\n" if "atexit" in code else "")
    plain = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
        check=False,
    )  # fmt: skip
    assert plain.returncode in (status, status - 128 - 2 * (status - 128))


def server_process():
    children = psutil.Process().children()
    return next(child for child in children if SERVER in child.cmdline())


def job_of(server, folder):
    """The process of the job that runs in a folder."""
    return next(job for job in server.children() if job.cwd() == str(folder))


def test_a_job_whose_asker_was_killed_is_ended(ask, tmp_path):
    asker = ask(SLEEP)
    wait_for((tmp_path / "begun").exists)
    server = server_process()
    job = job_of(server, tmp_path)
    asker.kill()
    asker.wait()
    wait_for(lambda: not job.is_running())
    assert ask("print(1)").communicate()[0] == "1\n", "the server goes on"


def test_ctrl_c_ends_the_job_by_its_own_words(ask, tmp_path):
    """The terminal interrupts all processes; the asker waits for what its job says."""
    code = (
        f"try:\n  {SLEEP}\nexcept KeyboardInterrupt:\n  raise SystemExit(130)"
    )
    asker = ask(code)
    wait_for((tmp_path / "begun").exists)
    server = server_process()
    for process in (asker, server, job_of(server, tmp_path)):
        process.send_signal(signal.SIGINT)
    assert asker.communicate()[1] == "" and asker.returncode == 130
    assert server.is_running()


def test_one_job_does_not_wait_for_another(ask, tmp_path):
    slow = ask(SLEEP)
    wait_for((tmp_path / "begun").exists)
    assert ask("print(1)").communicate()[0] == "1\n"
    slow.terminate()


@pytest.mark.parametrize("path", ["", "gone"])
def test_without_a_server_the_job_is_a_command(ask, tmp_path, path):
    job = ask("--version", path and str(tmp_path / path))
    out, _ = job.communicate()
    assert out.startswith("dperm ") and job.returncode == 0
    assert cost(tmp_path)["cpu_seconds"] > 0


def test_a_server_with_a_thread_of_its_own_serves_nobody(
    ask, monkeypatch, tmp_path
):
    begin = (
        "import threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=1)"
    )
    monkeypatch.setattr(
        warm, "COMMAND", ("-P", "-c", f"{begin}.start()\n{SERVER}")
    )
    monkeypatch.setenv(launch.SERVER, "")
    server = warm.Server()
    path = os.environ[launch.SERVER]
    assert ask("--version", path).communicate()[0].startswith("dperm ")
    server.stop()


def test_an_interrupt_while_a_server_imports_is_not_told(
    monkeypatch, tmp_path, capfd
):
    """The terminal interrupts all processes; the command says so, once."""
    slow = tmp_path / "interrupted_module.py"
    slow.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    served = SERVER.replace("[])", "['interrupted_module'])")
    begin = f"import sys; sys.path.append({str(tmp_path)!r})"
    monkeypatch.setattr(warm, "COMMAND", ("-P", "-c", f"{begin}\n{served}"))
    monkeypatch.setenv(launch.SERVER, "")
    server = warm.Server()
    server.stop()
    assert server.process.returncode == 0
    assert capfd.readouterr().err == ""


def test_a_server_ends_with_the_process_that_started_it(tmp_path):
    """However it ends: the kernel closes the pipe that the server reads."""
    start = (
        "import os\nfrom dperm.workflow import warm\n"
        f"warm.COMMAND = ('-P', '-c', {SERVER!r})\n"
        "print(warm.Server().process.pid, flush=True)\nos.kill(os.getpid(), 9)"
    )
    done = python("-c", start)
    assert done.returncode == -signal.SIGKILL
    assert done.stderr == ""
    wait_for(lambda: not psutil.pid_exists(int(done.stdout)))


def test_ctrl_c_while_a_server_starts_prints_nothing(monkeypatch, capfd):
    """It is meant for the jobs, none of which runs yet."""
    monkeypatch.setenv(launch.SERVER, "")
    server = warm.Server()
    for _ in range(10):
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    server.stop()
    assert server.process.returncode == 0
    assert capfd.readouterr().err == ""


def test_ctrl_c_while_a_job_starts_is_one_line(tmp_path):
    command = [sys.executable, "-I", "-S", launch.__file__, "cost.json"]
    job = subprocess.Popen(
        [*command, "fetch", "problem=diabetes"], cwd=tmp_path, text=True,
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    launcher = psutil.Process(job.pid)
    wait_for(launcher.children)
    launcher.children()[0].send_signal(signal.SIGINT)
    told = job.communicate()[1]
    assert told.startswith("dperm: interrupted") and told.count("\n") == 1
    assert job.returncode == 130
