"""One real-looking sample of each language in tests/data/index."""

from pathlib import Path

from indexer.languages import registry
from indexer.parse import parse_file
from indexer.records import ParsedFile

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "index"
FILES = {
    "c_sharp": "c_sharp.cs",
    "ruby": "ruby.rb",
    "php": "php.php",
    "kotlin": "kotlin.kt",
    "scala": "scala.scala",
    "swift": "swift.swift",
    "bash": "bash.sh",
    "lua": "lua.lua",
}
BUDGET_S = 10.0


def read(language: str) -> tuple[bytes, ParsedFile]:
    source = (SAMPLES / FILES[language]).read_bytes()
    return source, parse_file(source, registry.get(language), BUDGET_S)[0]
