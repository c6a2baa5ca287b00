"""The index follows a project's file: through the daemon's client, a real indexer process, real rows."""

from __future__ import annotations

from pathlib import Path

from support.waiting import until

from daemon import roots
from daemon.indexing import IndexingClient
from daemon.projectfile import NAME
from daemon.projects import Projects
from daemon.settings import Index, Settings
from indexer.errors import IndexDamaged, IndexUnwritable
from indexer.frames import DATABASE
from indexer.read import Reader


def rows(folder: Path) -> set[str]:
    try:
        with Reader(folder / DATABASE) as reader:
            return {row.path for row in reader.files()}
    except (IndexDamaged, IndexUnwritable, OSError):
        return set()


async def test_rows_follow_the_project_file(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    for name in ("a.py", "gen/b.py", "secrets/c.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("def f():\n    return 1\n")
    chosen = Settings(index=Index(roots=(str(root),), workers=1, battery="run"))
    folder, everything = roots.folder(roots.normal(root)), {"a.py", "gen/b.py", "secrets/c.py"}
    client = IndexingClient(chosen, Projects(chosen))
    client.start()
    try:
        await until(lambda: rows(folder) == everything)
        (root / NAME).write_text("[complete]\nignore = ['secrets/']\n[index]\nignore = ['gen/']\n")
        await until(lambda: rows(folder) - {NAME} == {"a.py"})
        (root / "gen/new.py").write_text("y = 1\n")
        (root / "d.py").write_text("z = 1\n")
        await until(lambda: rows(folder) - {NAME} == {"a.py", "d.py"})
        (root / NAME).write_text("[index]\non = false\n")
        await until(lambda: not rows(folder))
        (root / NAME).write_text("[engine]\nmodel = 'x'\n")
        await until(lambda: rows(folder) - {NAME} == everything | {"d.py", "gen/new.py"})
    finally:
        await client.close()
