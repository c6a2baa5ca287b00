"""Imports to files, style by style; and the pure scores."""

from __future__ import annotations

import pytest

from indexer import rank, resolve
from indexer.languages.registry import Imports
from indexer.records import Import

PYTHON = Imports(style="module", separator=".", candidates=("{}.py", "{}/__init__.py"), name_is_module=True)
SCRIPT = Imports(style="relative", candidates=("{}", "{}.ts", "{}.js", "{}/index.ts"))
GO = Imports(style="package", separator="/")
JAVA = Imports(style="module", separator=".", candidates=("{}.java",))
RUST = Imports(style="module", separator="::", candidates=("{}.rs", "{}/mod.rs"))
C = Imports(style="include", candidates=("{}",))

FILES = (
    "src/app/__init__.py", "src/app/core.py", "src/app/sub/__init__.py", "src/app/sub/deep.py", "json.py",
    "far/core.py", "web/a.ts", "web/b/index.ts", "web/lib/c.js", "cmd/main.go", "pkg/util/one.go",
    "pkg/util/two.go", "main/java/org/x/Shape.java", "crate/src/geo/mod.rs", "crate/src/geo/line.rs",
    "crate/src/main.rs", "include/net/sock.h", "src/net.c", "src/net.h",
)  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "path", "item", "expected"),
    [
        (PYTHON, "tool.py", Import(module="app.core"), ["src/app/core.py"]),
        (PYTHON, "src/app/core.py", Import(module="app", names=("sub", "X")),
         ["src/app/__init__.py", "src/app/sub/__init__.py"]),
        (PYTHON, "src/app/sub/deep.py", Import(module="core", level=2), ["src/app/core.py"]),
        (PYTHON, "src/app/sub/deep.py", Import(module="", names=("deep",), level=1),
         ["src/app/sub/__init__.py"]),
        (PYTHON, "src/app/core.py", Import(module="", names=("sub",), level=1),
         ["src/app/__init__.py", "src/app/sub/__init__.py"]),
        (PYTHON, "src/app/core.py", Import(module="json"), ["json.py"]),
        (PYTHON, "x/y.py", Import(module="deep"), []),
        (PYTHON, "a.py", Import(module="x", level=9), []),
        (SCRIPT, "web/lib/c.js", Import(module="../a"), ["web/a.ts"]),
        (SCRIPT, "web/a.ts", Import(module="./b"), ["web/b/index.ts"]),
        (SCRIPT, "web/b/index.ts", Import(module="../a.js"), ["web/a.ts"]),
        (SCRIPT, "web/a.ts", Import(module="@/lib/c"), ["web/lib/c.js"]),
        (SCRIPT, "web/a.ts", Import(module="../../../../etc/passwd"), []),
        (SCRIPT, "web/a.ts", Import(module="react"), []),
        (GO, "cmd/main.go", Import(module="example.org/x/pkg/util"), ["pkg/util/one.go", "pkg/util/two.go"]),
        (GO, "cmd/main.go", Import(module="fmt"), []),
        (JAVA, "main/java/org/x/Y.java", Import(module="org.x.Shape"), ["main/java/org/x/Shape.java"]),
        (JAVA, "Y.java", Import(module="org.x.Shape.area"), ["main/java/org/x/Shape.java"]),
        (RUST, "crate/src/main.rs", Import(module="crate::geo::line::Line"), ["crate/src/geo/line.rs"]),
        (RUST, "crate/src/geo/line.rs", Import(module="super::Point"), ["crate/src/geo/mod.rs"]),
        (C, "src/net.c", Import(module="net.h"), ["src/net.h"]),
        (C, "src/net.c", Import(module="net/sock.h"), ["include/net/sock.h"]),
        (Imports(), "a.md", Import(module="x"), []),
    ],
)  # fmt: skip
def test_targets(rule: Imports, path: str, item: Import, expected: list[str]) -> None:
    paths = resolve.Paths(FILES)
    found = resolve.targets(item, path, rule, paths)
    assert list(found) == expected
    keys = resolve.keys(item, path, rule)
    for hit in found:
        assert keys & set(resolve.Paths.keys(hit)), "a file that comes later would be missed"


def test_paths_forget() -> None:
    paths = resolve.Paths(FILES)
    for path in FILES:
        paths.discard(path)
        paths.discard(path)
    assert len(paths) == 0
    assert not list(paths.ending("core.py"))
    assert not paths.inside("pkg/util")


def test_nearness_and_recency() -> None:
    assert rank.nearness("a/b/c.py", "a/b/d.py") == 1.0
    assert rank.nearness("a/b/c.py", "a/d.py") > rank.nearness("a/b/c.py", "x/d.py") > 0
    assert rank.recency(-5) == 1.0
    assert rank.recency(rank.HALF_LIFE_S) == pytest.approx(0.5)


def test_importance_flows_to_what_is_used() -> None:
    edges = [(1, 2, 1.0), (3, 2, 1.0), (4, 2, 1.0), (2, 5, 1.0)]
    scores = rank.importance(edges)
    assert scores[5] == 1.0
    assert scores[2] > scores[1] == scores[3]
    near_four = rank.importance(edges, start={4: 1.0})
    assert near_four[4] > near_four[1]
    assert rank.importance([]) == {}


def test_weights() -> None:
    assert rank.weight(1, 0) > rank.weight(0, 3)
    assert rank.weight(0, 100) > rank.weight(1, 0)
    assert rank.relevance(5, 1, 1) > rank.relevance(5, 0.1, 0)
    few, many = rank.rarity([1, 900], 1000)
    assert few > many > 0
