"""The languages that the index knows: facts, grammar and query of each, read from its folder on first use."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Literal

import msgspec
import tree_sitter

from indexer.records import SymbolKind

QUERY_FILES = ("symbols.scm", "references.scm", "imports.scm")
_ENCLOSE_NOTHING = frozenset((b"field", b"variable", b"constant", b"member"))
HEAD = 4096
"""Bytes of a file's beginning that language_for looks at."""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables in facts.toml."""


class Symbols(Table, frozen=True):
    """How definitions are read beyond the query."""

    constructors: tuple[str, ...] = ()
    """Names of methods that construct."""
    class_named_constructor: bool = False
    """A method named like its class constructs (C++)."""
    upper_constants: bool = False
    """A variable in UPPER_CASE is a constant."""
    drop_local: tuple[SymbolKind, ...] = ()
    """Kinds that are no symbols inside functions."""
    doc: Literal["comment", "string"] = "comment"
    """Documentation is the comment block above, or only a string captured as @doc."""
    ends_before_comments: bool = False
    """Comments and blanks at the end of a definition do not belong to it (blocks by indentation)."""


class Exports(Table, frozen=True):
    """What other files can see."""

    rule: Literal["all", "underscore", "capital", "words"] = "all"
    """`underscore`: names with a leading one are private, `__x__` is not. `capital`: the first letter
    decides. `words`: exported when one of public_words stands before the name, or by @exported."""
    public_words: tuple[str, ...] = ()
    """Of the words before the name."""
    private_words: tuple[str, ...] = ()
    """One of these before the name makes it private under every rule."""
    unheard: tuple[str, ...] = ()
    """Modifiers that say nothing about visibility although they hold such a word (Swift's `private(set)`)."""
    private_prefix: str = ""
    """Names beginning with it are private under every rule (JavaScript's `#`)."""
    members: Literal["follow", "own"] = "own"
    """`follow`: exported as its parent, unless private; `own`: by the rule, when its parent is."""
    open_kinds: tuple[str, ...] = ()
    """Kinds whose members always follow their parent (interface, enum, trait)."""
    closed_kinds: tuple[str, ...] = ()
    """Kinds whose members are private until an @access says otherwise (C++ class)."""
    all_when_unmarked: bool = False
    """Under `words`: a file in which nothing is exported exports everything (scripts, CommonJS)."""


class Imports(Table, frozen=True):
    """How imports name files. `candidates` are tried in order with the module's path in place of `{}`."""

    style: Literal["module", "relative", "include", "package", "none"] = "none"
    """`module`: dotted from any source root (Python, Java). `relative`: a path from the importing file
    when it begins with a dot, else a package (JavaScript). `include`: a path from the importing file or any
    include directory (C). `package`: a directory whose path ends like the module (Go, C#)."""
    separator: str = "/"
    """Between the parts of a module's name; becomes `/`."""
    candidates: tuple[str, ...] = ()
    name_is_module: bool = False
    """An imported name may itself be a file (`from package import module`)."""


class Facts(Table, frozen=True):
    """facts.toml. Variants share a folder's queries under another name, grammar and extensions (TSX)."""

    name: str
    grammar: str
    """`module:function` of the grammar wheel."""
    extensions: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    """Whole file names, `*` allowed at the ends."""
    interpreters: tuple[str, ...] = ()
    """Last word of a `#!` line's path, version digits left out."""
    sniff_extensions: tuple[str, ...] = ()
    """Extensions shared with another language, taken when `sniff` is found in the head."""
    sniff: str = ""
    line_comment: str = ""
    block_comment: tuple[str, ...] = ()
    """Opening and closing."""
    block_words: tuple[str, ...] = ()
    """Words that open a block."""
    test_patterns: tuple[str, ...] = ()
    """Globs over a path relative to its root that tell a test file."""
    symbols: Symbols = Symbols()
    exports: Exports = Exports()
    imports: Imports = Imports()
    more_queries: tuple[str, ...] = ()
    """Names of further query files of the folder."""
    variants: tuple[Mapping[str, str | tuple[str, ...]], ...] = ()


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """One language. Raises ModuleNotFoundError from grammar() when its wheel is not installed."""

    name: str
    facts: Facts
    queries: str
    """Text of the three query files, joined."""
    imports: str = ""
    """Text of imports.scm alone."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """With the leading dot, lower case."""
        return self.facts.extensions

    @property
    def line_comment(self) -> str:
        """What begins a comment to the end of the line."""
        return self.facts.line_comment

    @property
    def block_words(self) -> tuple[str, ...]:
        """Words that open a block."""
        return self.facts.block_words

    @property
    def test_patterns(self) -> tuple[str, ...]:
        """Globs that tell a test file."""
        return self.facts.test_patterns

    def grammar(self) -> tree_sitter.Language:
        """The grammar, loaded once per process."""
        return _grammar(self.facts.grammar)

    def query(self) -> tree_sitter.Query:
        """The joined query, compiled once per process. Raises tree_sitter.QueryError when it is wrong."""
        return _query(self.name)

    def scope_query(self) -> tree_sitter.Query:
        """The query without what encloses nothing: references, fields, values. Compiled once per process.

        A pattern for the fields of a class looks at all its members, whatever range it is asked about.
        """
        return _scope_query(self.name)

    def import_query(self) -> tree_sitter.Query:
        """The query of imports alone, compiled once per process."""
        return _import_query(self.name)


@functools.cache
def _grammar(where: str) -> tree_sitter.Language:
    module, _, function = where.partition(":")
    return tree_sitter.Language(getattr(importlib.import_module(module), function)())


@functools.cache
def _query(name: str) -> tree_sitter.Query:
    language = get(name)
    return tree_sitter.Query(language.grammar(), language.queries)


@functools.cache
def _scope_query(name: str) -> tree_sitter.Query:
    query = tree_sitter.Query(get(name).grammar(), get(name).queries)
    text = get(name).queries.encode()
    for pattern in range(query.pattern_count):  # type: ignore[call-overload]  # a property, whatever its stub says
        found = text[query.start_byte_for_pattern(pattern) : query.end_byte_for_pattern(pattern)]
        kinds = set(re.findall(rb"@definition\.(\w+)", found))
        if b"@reference." in found or (kinds and kinds <= _ENCLOSE_NOTHING):
            query.disable_pattern(pattern)
    return query


@functools.cache
def _import_query(name: str) -> tree_sitter.Query:
    language = get(name)
    return tree_sitter.Query(language.grammar(), language.imports)


def _read(folder: Traversable) -> list[Language]:
    facts = msgspec.toml.decode(folder.joinpath("facts.toml").read_bytes(), type=Facts)
    plain = msgspec.structs.asdict(facts)
    shapes = [facts]
    for variant in facts.variants:
        own: dict[str, object] = {"variants": (), "filenames": (), "interpreters": (), **variant}
        shapes.append(msgspec.convert({**plain, **own}, Facts, from_attributes=True))
    imports = folder.joinpath("imports.scm").read_text(encoding="utf-8")
    return [
        Language(name=shape.name, facts=shape, queries=_queries(folder, shape), imports=imports)
        for shape in shapes
    ]


def _queries(folder: Traversable, facts: Facts) -> str:
    names = (*QUERY_FILES, *facts.more_queries)
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


class _Table(msgspec.Struct, frozen=True):
    by_name: dict[str, Language]
    by_extension: dict[str, Language]
    by_filename: dict[str, Language]
    by_interpreter: dict[str, Language]
    sniffs: dict[str, list[tuple[re.Pattern[bytes], Language]]]


@functools.cache
def _table() -> _Table:
    table = _Table({}, {}, {}, {}, {})
    folders = sorted(resources.files("indexer.languages").iterdir(), key=lambda f: f.name)
    for language in [found for f in folders if f.joinpath("facts.toml").is_file() for found in _read(f)]:
        facts = language.facts
        for key, index in (
            ((facts.name,), table.by_name),
            (facts.extensions, table.by_extension),
            (facts.filenames, table.by_filename),
            (facts.interpreters, table.by_interpreter),
        ):
            clash = next((k for k in key if k in index), None)
            if clash is not None:
                raise ValueError(f"{facts.name} and {index[clash].name} both claim {clash!r}")
            index.update(dict.fromkeys(key, language))
        for extension in facts.sniff_extensions:
            pattern = re.compile(facts.sniff.encode(), re.MULTILINE)
            table.sniffs.setdefault(extension, []).append((pattern, language))
    return table


def language_for(path: str, head: bytes) -> Language | None:
    """The language of a file by its name, else by its first line; `head` is its beginning (HEAD bytes do)."""
    table = _table()
    name = path.rsplit("/", 1)[-1]
    found = table.by_filename.get(name)
    if found is not None:
        return found
    dot = name.rfind(".")
    extension = name[dot:].lower() if dot >= 0 else ""
    for pattern, language in table.sniffs.get(extension, ()):
        if pattern.search(head[:HEAD]):
            return language
    found = table.by_extension.get(extension)
    if found is not None or not head.startswith(b"#!"):
        return found
    words = head[2:200].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    names = [w.rsplit("/", 1)[-1].rstrip("0123456789.") for w in words if not w.startswith("-")]
    return next((table.by_interpreter[n] for n in names[:3] if n in table.by_interpreter), None)


def get(name: str) -> Language:
    """The language of that name. Raises KeyError."""
    return _table().by_name[name]


def find(name: str) -> Language | None:
    """A language by name; None when there is none."""
    return _table().by_name.get(name)


def all_names() -> tuple[str, ...]:
    """Names of all languages, variants included, sorted."""
    return tuple(sorted(_table().by_name))
