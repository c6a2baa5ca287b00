(import_statement) @import
(import_statement name: (dotted_name) @import.module)
(import_statement name: (aliased_import name: (dotted_name) @import.module))

(import_from_statement) @import
(import_from_statement module_name: (dotted_name) @import.module)
(import_from_statement module_name: (relative_import (import_prefix) @import.level))
(import_from_statement module_name: (relative_import (dotted_name) @import.module))
(import_from_statement name: (dotted_name) @import.name)
(import_from_statement name: (aliased_import name: (dotted_name) @import.name))
(import_from_statement (wildcard_import) @import.name)
(future_import_statement) @import
