(import_declaration) @import @import.tree
(import_declaration (identifier) @import.name .)
(namespace_selectors (identifier) @import.name)
(arrow_renamed_identifier name: (identifier) @import.name)
(as_renamed_identifier name: (identifier) @import.name)
