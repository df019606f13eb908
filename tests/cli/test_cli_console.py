import logging
import os
import pty
import re
import subprocess
import sys

from sameworld.cli.console import Grid, progress_bar, say_grid
from sameworld.core.progress import Progress


def test_cells_and_headers_are_printed_as_they_are(capsys):
    rows = (("[bold]x[/bold]", "1"),)
    say_grid(Grid(title="a [s] table", header=("gap [s]", "n"), rows=rows))
    page = capsys.readouterr().out
    assert "a [s] table" in page and "gap [s]" in page and "[bold]x[/bold]" in page


def test_progress_without_a_terminal_is_one_line_per_begin_and_end(capsys):
    with progress_bar() as report:
        for done in range(5):
            report(Progress(stage="screening", done=done, total=4, message=f"cost {done}"))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["screening: 0/4 cost 0", "screening: 4/4 cost 4"]


def test_the_log_of_the_package_is_shown_beside_progress_only(capsys):
    log = logging.getLogger("sameworld.worlds")
    with progress_bar():
        log.info("Compiling '%s'", "gradient")
    log.info("nobody waits")
    assert capsys.readouterr().err == "Compiling 'gradient'\n"


SLOW_WORK = """
import time
from sameworld.cli.console import progress_bar
from sameworld.core.progress import Progress

with progress_bar() as report:
    for done in range(5):
        report(Progress(stage="fit", done=done, total=8, message=f"start {done}"))
        time.sleep(0.3)
    report(Progress(stage="judging", done=0, total=1))
    time.sleep(0.3)
"""


def test_progress_in_a_terminal_shows_time_spent_and_left_and_leaves_nothing():
    ours, theirs = pty.openpty()
    work = subprocess.Popen(
        [sys.executable, "-c", SLOW_WORK],
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
    )
    os.close(theirs)
    shown = _everything(ours)
    assert work.wait(timeout=60) == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.search(r"fit .*4/8 +≤ 0:\d\d left 0:\d\d spent start 4", plain)
    assert re.search(r"judging .*0/1 +0:\d\d spent", plain)
    assert shown.rstrip().endswith("\x1b[2K")


def _everything(descriptor):
    read = bytearray()
    while True:
        try:
            chunk = os.read(descriptor, 1 << 16)
        except OSError:  # Linux says so when the other end is closed
            chunk = b""
        if not chunk:
            os.close(descriptor)
            return read.decode()
        read += chunk
