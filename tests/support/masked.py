"""A small repository to mask: one file of shapes, files that use them, a test, and what must stay out."""

from pathlib import Path

SHAPES = "".join(
    f"class Shape{n}:\n"
    f'    """Number {n}."""\n\n'
    f"    def __init__(self, edge: float) -> None:\n"
    f"        self.edge = edge\n\n"
    f"    def surface_{n}(self) -> float:\n"
    f"        doubled = self.edge * {n}\n"
    f"        return doubled + self.edge\n\n\n"
    for n in range(12)
)


def user(first: int) -> str:
    """Functions that each use one shape, named only there and in the import."""
    names = [f"Shape{n}" for n in range(first, first + 4)]
    text = f"from shapes import {', '.join(names)}\n\n\n"
    for n in range(first, first + 4):
        text += (
            f"def measure_{n}(values: list[float]) -> float:\n"
            f"    total = 0.0\n"
            f"    for value in values:\n"
            f"        if value > {n}:\n"
            f"            total += Shape{n}(value).surface_{n}()\n"
            f"            total = round(total, {n + 1})\n"
            f"        print(value, total)\n"
            f"    average = total / max(1, len(values))\n"
            f"    return average\n\n\n" + f"PADDING_{n} = {n}\n" * 30 + "\n\n"
        )
    return text


def write(root: Path) -> Path:
    root.mkdir()
    (root / "shapes.py").write_text(SHAPES, encoding="utf-8")
    for name, first in (("one.py", 0), ("two.py", 4), ("test_three.py", 8)):
        (root / name).write_text(user(first), encoding="utf-8")
    (root / "notes.md").write_text("# Shapes\n", encoding="utf-8")
    (root / "odd.py").write_bytes(b"\xef\xbb\xbfx = 1\r\n" * 40)
    (root / ".gitignore").write_text("made.py\n", encoding="utf-8")
    (root / "made.py").write_text(user(0), encoding="utf-8")
    (root / ".env").write_text("SECRET=1\n", encoding="utf-8")
    return root
