(import_declaration) @import
(import_declaration (identifier) @import.module)
