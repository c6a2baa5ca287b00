(namespace_use_declaration) @import
(namespace_use_clause (qualified_name prefix: (namespace_name) @import.module (name) @import.name))
(namespace_use_declaration (namespace_use_clause . (name) @import.module))
(namespace_use_declaration (namespace_name) @import.module)
(namespace_use_group (namespace_use_clause . (name) @import.name))

(include_expression) @import
(include_once_expression) @import
(require_expression) @import
(require_once_expression) @import
(include_expression [(string (string_content) @import.module) (_ (string (string_content) @import.module))])
(include_once_expression [(string (string_content) @import.module) (_ (string (string_content) @import.module))])
(require_expression [(string (string_content) @import.module) (_ (string (string_content) @import.module))])
(require_once_expression [(string (string_content) @import.module) (_ (string (string_content) @import.module))])
