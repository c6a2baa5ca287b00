"""The house rules, checked on the code itself: borders, owners, sizes, layers."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(p for top in ("daemon", "indexer") for p in (ROOT / top).rglob("*.py"))
NAMES = [str(p.relative_to(ROOT)) for p in FILES]
TESTS = sorted(
    str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("*.py") if p.relative_to(ROOT).parts[1] != "data"
)
"""Files of tests; samples and golden files may be as long as they are."""

OWNERS = {
    "aiohttp": ("daemon/doors/", "daemon/bench/"),
    "llama_cpp": ("daemon/engine/binding.py", "daemon/engine/device.py", "daemon/engine/words.py"),
    "detect_secrets": ("daemon/detection.py",),
    "platformdirs": ("daemon/paths.py",),
    "watchdog": ("indexer/inotify.py", "indexer/recursive.py"),
    "tree_sitter": ("indexer/syntax.py", "indexer/languages/"),
    "tiktoken": ("indexer/tokens.py",),
    "sqlite_utils": ("indexer/schema.py", "indexer/store.py", "indexer/read.py", "daemon/observe/"),
    "rich": ("daemon/cli/", "daemon/bench/"),
    "xllamacpp": ("daemon/bench/",),
    "pygls": ("daemon/doors/lsp",),
    "lsprotocol": ("daemon/doors/lsp",),
}
"""Which library may be imported where."""

LAYERS = (
    ("daemon/cli/", 13),
    ("daemon/bench/", 12),
    ("daemon/app.py", 11),
    ("daemon/doors/", 10),
    ("daemon/lifecycle.py", 8),
    ("daemon/indexing.py", 8),
    ("daemon/pipeline.py", 9),
    ("daemon/replay.py", 9),
    ("daemon/idle.py", 8),
    ("daemon/jobs.py", 8),
    ("daemon/planning.py", 8),
    ("daemon/runs/", 8),
    ("daemon/recall/", 8),
    ("daemon/context/", 7),
    ("daemon/engine/", 7),
    ("daemon/observe/", 7),
    ("daemon/models/", 7),
    ("daemon/polish/", 7),
    ("daemon/documents/recovery.py", 6),
    ("daemon/documents/opening.py", 6),
    ("daemon/documents/mirror.py", 5),
    ("daemon/readers.py", 4),
    ("daemon/projects.py", 5),
    ("daemon/projectfile.py", 4),
    ("daemon/switches.py", 3),
    ("daemon/power.py", 3),
    ("daemon/roots.py", 3),
    ("daemon/redaction.py", 3),
    ("daemon/documents/", 3),
    ("indexer/", 2),
    ("daemon/", 1),
)
"""Height of each room. An import may go down, or stay inside one room."""

BANNED = ("tests", "config", "installers")
STDLIB_NAMES = {
    "types.py",
    "queue.py",
    "logging.py",
    "http.py",
    "signal.py",
    "socket.py",
    "select.py",
    "token.py",
}
HTTP_ROOM = "daemon/doors/http.py"
"""The one file that house.md itself gives a standard name; it is always imported as daemon.doors.http."""


def height(name: str) -> tuple[str, int]:
    return next((prefix, level) for prefix, level in LAYERS if name.startswith(prefix))


def imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def as_file(module: str) -> str | None:
    base = ROOT / Path(*module.split("."))
    if base.with_suffix(".py").exists():
        return str(base.with_suffix(".py").relative_to(ROOT))
    return f"{base.relative_to(ROOT)}/__init__.py" if (base / "__init__.py").exists() else None


@pytest.mark.parametrize("name", [*NAMES, *TESTS])
def test_lengths(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8").count("\n") <= 300, f"{name} holds more than one thing"


@pytest.mark.parametrize("name", NAMES)
def test_functions_fit_a_screen(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= 40, f"{name}:{node.lineno} {node.name} has {lines} lines"


@pytest.mark.parametrize("name", NAMES)
def test_one_owner_per_library(name: str) -> None:
    for module in imports(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        top = module.split(".")[0]
        assert top not in BANNED, f"{name} imports {module}"
        allowed = OWNERS.get(top)
        assert allowed is None or name.startswith(allowed), f"{name} imports {top}, owned by {allowed}"


@pytest.mark.parametrize("name", NAMES)
def test_imports_go_down(name: str) -> None:
    room, level = height(name)
    for module in imports(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        target = as_file(module) if module.split(".")[0] in ("daemon", "indexer") else None
        if target is None or target.endswith("__init__.py"):
            continue
        other, below = height(target)
        assert below < level or other == room, f"{name} (level {level}) imports {target} (level {below})"
        assert not (name.startswith("indexer/") and target.startswith("daemon/")), f"{name} imports {target}"


def test_no_cycles() -> None:
    graph: dict[str, set[str]] = {}
    for name in NAMES:
        found = (as_file(m) for m in imports(ast.parse((ROOT / name).read_text(encoding="utf-8"))))
        graph[name] = {t for t in found if t in NAMES and not t.endswith("__init__.py") and t != name}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"cycle: {' → '.join((*path, name))}"
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_no_standard_library_names() -> None:
    clash = [n for n in NAMES if Path(n).name in STDLIB_NAMES and n != HTTP_ROOM]
    assert not clash


def test_top_level_is_fixed() -> None:
    allowed = {"pyproject.toml", "daemon", "indexer", "tests", "installers", "config", "README.md", "LICENSE"}
    extra = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")} - allowed
    assert not extra - {"build", "dist"}, extra


@pytest.mark.parametrize("name", NAMES)
def test_only_commands_print_and_exit(name: str) -> None:
    if name.startswith("daemon/cli/"):
        return
    for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
        called = node.func if isinstance(node, ast.Call) else None
        assert not (isinstance(called, ast.Name) and called.id in ("print", "exit")), f"{name}:{node.lineno}"
