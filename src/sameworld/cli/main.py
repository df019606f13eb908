"""Entry point of the command ``sameworld``."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from sameworld.cli.overview import VERBS, overview, suggestion

__all__ = ["main"]

USAGE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        arguments: Words after the program's name; from the command line if not given.

    Returns:
        0 if all is well, 1 if what was tested failed, 2 for unusable input, 130 if interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return 0
    if words[0] in ("-V", "--version"):
        sys.stdout.write(f"{_version()}\n")
        return 0
    if words[0] not in VERBS:
        return _complain(suggestion(words[0]))
    return _guarded(words, debug)


def _guarded(words: list[str], debug: bool) -> int:
    from sameworld.core.errors import SameworldError

    try:
        return _run(words)
    except SameworldError as error:
        if debug:
            traceback.print_exc()
        return _complain(str(error))
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nInterrupted. Finished work is kept in the run folder: "
            "the same command with the same --out goes on from there.\n"
        )
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(words: list[str]) -> int:
    import tyro

    verb = VERBS[words[0]]
    if verb.draws and not {"-h", "--help"} & set(words):
        _choose_renderer()
    command = verb.load()
    return tyro.cli(command, prog=f"sameworld {words[0]}", args=words[1:]).run()


def _choose_renderer() -> None:
    """Set ``MUJOCO_GL``, which MuJoCo reads once at import, to what draws without a display."""
    if "MUJOCO_GL" not in os.environ:
        from sameworld.cli.machine import working_renderer

        os.environ["MUJOCO_GL"] = working_renderer() or "disable"


def _complain(message: str) -> int:
    sys.stderr.write(f"sameworld: {message}\n")
    return USAGE


def _version() -> str:
    from sameworld import __version__

    return __version__
