import os
import re
import signal
import subprocess
import sys
from importlib import import_module

import pytest

from sameworld import __version__
from sameworld.cli.main import main
from sameworld.cli.overview import VERBS


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "sameworld.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_help_names_every_verb_and_imports_nothing_heavy():
    script = (
        "import sys; from sameworld.cli.main import main; code = main(['--help']);"
        "heavy = {'scipy', 'mujoco', 'pyarrow', 'matplotlib', 'tyro', 'av'} & set(sys.modules);"
        "sys.exit(code or str(sorted(heavy)) if heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for name, verb in VERBS.items():
        assert f"{name} " in done.stdout and verb.summary in done.stdout


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    page = capsys.readouterr().out
    assert page.startswith(f"usage: sameworld {name}")
    command = VERBS[name].load()
    assert command.__doc__.splitlines()[0].split()[0] in page
    assert import_module(VERBS[name].module).__all__ == [VERBS[name].command]


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_unknown_verbs_and_options_exit_with_2():
    done = run("chek", "cube")
    assert done.returncode == 2
    assert "no verb 'chek'" in done.stderr and "Did you mean 'check'?" in done.stderr
    done = run("inspect", "cube", "--jsn")
    assert done.returncode == 2
    assert "--json" in done.stdout + done.stderr


def test_errors_are_one_readable_block_and_debug_shows_the_traceback(tmp_path):
    done = run("inspect", str(tmp_path))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"sameworld: '{tmp_path}' is nothing known")
    assert "Traceback" not in done.stderr
    done = run("inspect", str(tmp_path), "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr and "StoreError" in done.stderr


@pytest.fixture
def interruptible():
    """Background jobs of a shell ignore interrupts, and so would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interruption_exits_with_130_and_says_how_to_go_on(tmp_path):
    words = [
        "identify",
        "cube",
        "cube_tosses:12",
        "--free",
        "pair:*",
        "--out",
        str(tmp_path / "run"),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "sameworld.cli", *words],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "MUJOCO_GL": "disable"},
    ) as running:
        assert running.stderr is not None
        assert re.match(r"\w+: 0/\d+ ", running.stderr.readline())
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
        assert running.wait(timeout=60) == 130, rest
    assert "same command" in rest and "Traceback" not in rest
