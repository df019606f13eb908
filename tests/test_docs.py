"""README and documentation: code runs, links lead somewhere, names exist."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
#: Images that are made from a finished release.
MADE_LATER = {"docs/images/report.png"}
SLOW = {"README.md", "docs/your_own_data.md"}
#: Fewer recordings for the tests; every text on the left must stand on the page.
QUICK = {
    "README.md": {"cube_tosses(32)": "cube_tosses(12)", "[:12]": "[:8]", "[12:]": "[8:]"},
    "docs/your_own_data.md": {'armature"))': 'armature"), search="none")'},
}

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAME = re.compile(r"`(sameworld(?:\.\w+)+)(?:\([^`]*\))?`")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(text(page))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runnable() -> list[object]:
    return [
        pytest.param(p, id=name_of(p), marks=[pytest.mark.slow] if name_of(p) in SLOW else [])
        for p in PAGES
        if blocks(p)
    ]


@pytest.mark.parametrize("page", runnable())
def test_python_blocks_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path):
    script, code = tmp_path / "page.py", "\n".join(blocks(page))
    for full, quick in QUICK.get(name_of(page), {}).items():
        assert full in code
        code = code.replace(full, quick)
    script.write_text(code, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_exist(page: Path):
    plain = FENCED.sub("", text(page))
    missing = [
        target
        for target in LINK.findall(plain)
        if not target.startswith(("http://", "https://", "#", "mailto:"))
        and not _exists(page, target)
    ]
    assert not missing


def _exists(page: Path, target: str) -> bool:
    path = (page.parent / target.partition("#")[0]).resolve()
    made_later = path.is_relative_to(ROOT) and name_of(path) in MADE_LATER
    return path.exists() or made_later


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_in_backticks_exist(page: Path):
    missing = [name for name in NAME.findall(text(page)) if not _resolves(name)]
    assert not missing


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return part in getattr(found, "__dataclass_fields__", {})
            found = getattr(found, part)
        return True
    return False


def test_every_page_is_reached_from_the_index():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(text(index))}
    assert set((ROOT / "docs").rglob("*.md")) - {index} <= linked


def test_own_world_page_shows_the_example_as_it_is():
    example = (ROOT / "examples" / "03_your_own_world.py").read_text(encoding="utf-8")
    assert blocks(ROOT / "docs" / "your_own_world.md") == [example]


def test_every_kind_of_address_is_documented():
    from sameworld.core.address import KINDS

    page = text(ROOT / "docs" / "conventions.md")
    assert [kind for kind in KINDS if f"| `{kind}` |" not in page] == []


def test_every_verb_is_documented():
    from sameworld.cli.overview import VERBS

    page = text(ROOT / "docs" / "cli.md")
    assert [verb for verb in VERBS if f"| `{verb}" not in page] == []


def test_every_option_and_verdict_of_identify_is_explained():
    from typing import get_args

    from sameworld import IdentifyConfig
    from sameworld.stages.identify.result import Verdict

    page = text(ROOT / "docs" / "stages" / "identify.md")
    wanted = [*IdentifyConfig.__dataclass_fields__, *get_args(Verdict)]
    assert [word for word in wanted if f"`{word}" not in page] == []


def test_defaults_in_the_table_of_options_are_those_of_the_code():
    from sameworld import IdentifyConfig

    rows = dict(
        re.findall(r"^\| `(\w+)` \| (\S+) \|", text(ROOT / "docs/stages/identify.md"), re.MULTILINE)
    )
    wrong = {
        name: rows.get(name)
        for name, value in vars(IdentifyConfig()).items()
        if not _same(rows.get(name, "").strip("`"), value)
    }
    assert wrong == {}


def _same(shown: str, value: object) -> bool:
    if isinstance(value, float):
        return float(shown) == value
    return shown == str(value)


def test_every_address_of_the_zoo_scenes_is_in_the_table():
    from sameworld import build
    from sameworld.zoo import scene

    page = text(ROOT / "docs" / "worlds" / "explicit.md")
    fields = {
        f"{a.kind}.{a.field}"
        for name in ("cube", "arm")
        for a in (p.address for p in build(scene(name)).parameters.parameters)
        if a.kind != "sensor"
    }
    last = {field.rpartition(".")[2] for field in fields}
    assert (
        sorted(part for part in last if f".{part}`" not in page and f"`.{part}" not in page) == []
    )


def test_every_section_of_the_report_is_explained():
    page = text(ROOT / "docs" / "report.md")
    templates = (ROOT / "src" / "sameworld" / "report" / "templates").glob("*.html")
    titles = [t for file in templates for t in re.findall(r"<h2>([^<{]+)</h2>", text(file))]
    assert titles
    assert [title for title in titles if f"| {title} |" not in page] == []


def test_every_public_name_stands_somewhere_in_the_docs():
    import sameworld

    pages = "".join(text(page) for page in PAGES)
    lacking = [n for n in sameworld.__all__ if n[0] != "_" and not re.search(rf"\b{n}\b", pages)]
    assert lacking == []


def test_every_error_is_documented():
    from sameworld.core import errors

    page = text(ROOT / "docs" / "errors.md")
    kinds = [n for n in errors.__all__ if n[0].isupper()]
    assert [kind for kind in kinds if kind not in page] == []
