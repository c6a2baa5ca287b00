"""Languages as data: one folder each, nothing about a language outside its folder.

    languages/<name>/facts.toml       the table of facts (fields: registry.Facts; an unknown key is an error)
    languages/<name>/symbols.scm      definitions
    languages/<name>/references.scm   uses of names
    languages/<name>/imports.scm      what a file takes from elsewhere
    languages/<name>/outline.toml     how an outline is written (fields: indexer/render.py)

The three query files are joined into one tree-sitter query which runs once per file; only the capture names
carry meaning. Names that begin with `_` are ignored (use them in predicates). Keep patterns local (a node
and its direct children; `.` anchors are fine): patterns over runs of siblings are slow.

symbols.scm
  @definition.KIND  the whole definition; KIND is a records.SymbolKind. Nesting of spans gives parents.
                    One node may be captured under several kinds: the kind listed first in SymbolKind wins.
  @name             its name (required). Belongs to the innermost definition around it; a second @name in one
                    definition makes a second symbol over the same span (Go's `var a, b int`).
  @body             where the signature ends (the `{…}` or the indented block). Innermost definition.
  @value            the value of a variable or constant: left out of the signature when long.
  @doc              a documentation string inside the definition (Python, Elixir …). Innermost definition.
  @comment          every comment, where documentation is the comment block right above a definition.
  @wrap             a node around one or more definitions that belongs to their text: `export …`,
                    `template <…>`, the `const` before declarators, the `type` before a Go spec. The span of
                    each direct definition becomes the wrap's; the text from its start to its first
                    definition is put before each signature. Wraps may nest. A wrap whose text before its
                    first definition ends with "(" is a group and takes no part (Go's `const (`).
  @wrap.plain       the same, but that text stays out of the signature (Python's decorated_definition).
  @lead             a decorator, attribute or annotation: left out of signatures; when it stands right before
                    a definition (Rust's attribute_item), it belongs to the definition's span.
  @container        a node that is no symbol itself but whose members belong to a type named by @scope in it
                    (Rust's impl, Swift's extension, Kotlin's companion).
  @scope            the type's name: inside a @container, or inside a definition that stands outside its type
                    (Go's receiver, C++ `A::f`). It goes into the qualified name, and the type becomes the
                    parent when it stands earlier in the file.
  @access           words that set the visibility of what follows in the same class (C++, Ruby): one of
                    exports.private_words hides it, any other shows it (Rust's `impl Trait for`).
  @exported         a name that is exported by a statement elsewhere (`export { a, b }`, `module.exports`).

references.scm — the capture is on the name itself, not on the whole expression
  @reference.ROLE   ROLE is a records.Role: call, type, base, decorator, attribute, name. A name captured
                    under several roles gets the first of: base, decorator, attribute, call, type, name. One
                    that is also the @name of a definition is no reference. Names captured by @import.name
                    become references of role `import` by themselves.
  @reference.none   takes a name out again (the names of type parameters).

imports.scm
  @import           the statement.
  @import.module    the module's text; quotes and angle brackets are stripped. Several in one statement make
                    several imports; with exactly one, all names of the statement are its names.
  @import.name      an imported name (the original one, not its alias).
  @import.level     leading dots (Python).
  @import.tree      instead of module and names: a text with groups, such as Rust's
                    `a::{b, c::{d, e as f}, g::*}`, split at facts imports.separator; the last part of each
                    path is the name.

A function inside a class-like symbol becomes a `method`, and a `constructor` when its name is in
symbols.constructors or equals the class's (symbols.class_named_constructor); a variable with an
UPPER_CASE name becomes a `constant` where symbols.upper_constants says so, any other variable directly
inside a class-like symbol a `field`; a `field` inside a function moves up to the class around it. Of
several assignments to one variable or field the first counts.
"""
