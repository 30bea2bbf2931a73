import os
import signal
import threading
import time

import pytest

from dperm.store import folders as store


def in_child(action):
    """Run an action in a child process; returns its exit code."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except RuntimeError as error:
            os._exit(7 if "another pipeline runs in" in str(error) else 8)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_second_writer_waits_for_the_lock(tmp_path):
    order, begun = tmp_path / "order", tmp_path / "begun"

    def second():
        begun.touch()
        with store.locked(tmp_path):
            order.write_text(order.read_text() + "second")

    with store.locked(tmp_path):
        thread = threading.Thread(target=in_child, args=(second,))
        thread.start()
        while not begun.exists():
            time.sleep(0.01)
        time.sleep(0.2)
        order.write_text("first, ")
    thread.join(20)
    assert order.read_text() == "first, second"


def test_a_second_pipeline_is_refused_and_told_of_the_first(tmp_path):
    path = str(tmp_path / ".snakemake" / "dperm.lock")
    store.refuse_second(path)
    assert in_child(lambda: store.refuse_second(path)) == 7
    with pytest.raises(RuntimeError, match=f"process {os.getpid()} on"):
        store.refuse_second(path)
    store._HELD.pop().release()
    assert in_child(lambda: store.refuse_second(path)) == 0


def test_a_killed_process_frees_its_lock(tmp_path, caplog):
    child = os.fork()
    if child == 0:
        with store.locked(tmp_path):
            (tmp_path / "held").touch()
            time.sleep(60)
        os._exit(0)
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    threading.Timer(0.3, os.kill, (child, signal.SIGKILL)).start()
    with store.locked(tmp_path):
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert f"waiting for another dperm process (process {child} on" in caplog.text
