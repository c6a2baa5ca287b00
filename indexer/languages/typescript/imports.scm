(import_statement) @import
(import_statement source: (string (string_fragment) @import.module))
(import_require_clause source: (string (string_fragment) @import.module))
(import_clause (identifier) @import.name)
(import_specifier name: (identifier) @import.name)

(export_statement source: (string (string_fragment) @import.module)) @import
(export_statement (export_clause (export_specifier name: (identifier) @import.name)) source: (_))

(call_expression function: (identifier) @_require arguments: (arguments . (string (string_fragment) @import.module))
  (#eq? @_require "require")) @import
(call_expression function: (import) arguments: (arguments . (string (string_fragment) @import.module))) @import
