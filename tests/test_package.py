"""The architecture, enforced: exports, weight, sizes, layers, names."""

import ast
import functools
import importlib
import inspect
import json
import pkgutil
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sameworld

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(sameworld.__file__).parent
CODE = ("src", "tests", "benchmarks", "examples")
FOUND = (m.name for m in pkgutil.walk_packages([str(PACKAGE)], "sameworld."))
MODULES = sorted({"sameworld", *(name for name in FOUND if not name.endswith("__main__"))})
MOST_LINES = 500
MOST_BODY_LINES = 80
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "misc"}
HEAVY = "scipy mujoco jax torch pyarrow av matplotlib jinja2 rich tyro pandas cma plotly".split()
#: Modules that talk to a terminal because that is their purpose.
TALKERS = {"sameworld.cli"}


def _sources(*folders):
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _named(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def _trees(*folders):
    for path in _sources(*folders):
        yield _named(path), _tree(path)


# ---- exports ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_every_export_resolves_and_is_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    exports = getattr(module, "__all__", [])
    assert len(set(exports)) == len(exports), f"{name} exports a name twice"
    for export in exports:
        value = getattr(module, export)
        if inspect.isfunction(value) or inspect.isclass(value):
            documented = inspect.getdoc(value) or ""
            generated = documented.startswith(f"{value.__name__}(")
            assert documented and not generated, f"{name}.{export} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_define_public_names_say_which(name):
    module = importlib.import_module(name)
    public = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and getattr(value, "__module__", None) == name
        and (inspect.isfunction(value) or inspect.isclass(value))
    ]
    missing = sorted(set(public) - set(getattr(module, "__all__", [])))
    assert not missing, f"{name} defines {missing} without exporting them; add an underscore"


def test_the_top_level_offers_the_nouns_and_the_verbs():
    for name in ("Scene", "Belief", "Episode", "build", "identify", "load_scene", "save_episodes"):
        assert name in sameworld.__all__
        assert name in dir(sameworld)
        assert getattr(sameworld, name).__doc__
    with pytest.raises(AttributeError):
        _ = sameworld.no_such_name


def test_version_is_that_of_the_project_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == sameworld.__version__


# ---- weight -------------------------------------------------------------------------------


def _loaded_by(statement):
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_pulls_in_nothing_heavy():
    loaded = _loaded_by("import sameworld; sameworld.Scene; sameworld.Belief")
    assert "sameworld.core" in loaded
    assert not loaded & set(HEAVY)


def test_the_store_needs_parquet_only_when_episodes_are_touched():
    loaded = _loaded_by("import sameworld.store")
    assert not loaded & (set(HEAVY) - {"scipy"})


# ---- size and style -----------------------------------------------------------------------


def test_files_are_short():
    lengths = {
        _named(path): len(path.read_text(encoding="utf-8").splitlines()) for path in _sources(*CODE)
    }
    assert len(lengths) > 100
    assert {name: n for name, n in lengths.items() if n > MOST_LINES} == {}


def _body_lines(node):
    body = node.body
    first = body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = body[1:] if documented and isinstance(first.value.value, str) else body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short():
    long = {}
    for name, tree in _trees(*CODE):
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = _body_lines(node)
                if lines > MOST_BODY_LINES:
                    long[f"{name}:{node.lineno} {node.name}"] = lines
    assert long == {}


def test_no_drawer_for_odds_and_ends():
    names = {_named(p) for p in _sources(*CODE) if FORBIDDEN_NAMES & {p.stem, *p.parent.parts}}
    assert names == set()


def _module_of(name):
    return name.removeprefix("src/").removesuffix(".py").replace("/", ".")


def test_library_code_neither_talks_nor_exits():
    found = []
    for name, tree in _trees("src"):
        if any(_module_of(name).startswith(talker) for talker in TALKERS):
            continue
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in ("print", "input", "exit", "quit"):
                found.append(f"{name}:{node.lineno} {called.id}")
            if isinstance(called, ast.Attribute) and ast.unparse(called) in (
                "sys.exit",
                "os._exit",
            ):
                found.append(f"{name}:{node.lineno} {ast.unparse(called)}")
    assert found == []


def test_no_pickles_and_no_code_from_text():
    found = []
    for name, tree in _trees("src"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported = {(node.module or "").partition(".")[0]}
            else:
                imported = set()
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    imported = {node.func.id} & {"eval", "exec"}
            if imported & {"pickle", "dill", "cloudpickle", "shelve", "marshal", "eval", "exec"}:
                found.append(f"{name}:{node.lineno}")
    assert found == []


def test_capabilities_are_declared_and_never_sniffed():
    allowed = {"src/sameworld/stages/identify/result.py"}  # a dataclass is told from a number
    found = [
        f"{name}:{node.lineno}"
        for name, tree in _trees("src")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "hasattr"
        and name not in allowed
    ]
    assert found == []


def test_no_absolute_paths_in_library_code():
    found = [
        f"{name}:{node.lineno} {node.value}"
        for name, tree in _trees("src")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(("/work", "/home", "/tmp", "/root", "/mnt", "C:\\"))
    ]
    assert found == []


# ---- layers -------------------------------------------------------------------------------


def test_layers_hold():
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    command = command or shutil.which("lint-imports")
    if command is None:
        pytest.skip("import-linter is not installed")
    done = subprocess.run(
        [command, "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_core_imports_nothing_heavy_at_the_top_of_a_module():
    found = [
        f"{name}:{node.lineno}"
        for name, tree in _trees("src/sameworld/core")
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and {n.partition(".")[0] for n in _imported(node)} & set(HEAVY)
    ]
    assert found == []


def _imported(node):
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names]
