(import) @import @import.tree
((import (qualified_identifier (identifier) @import.name .)) @_import (#not-match? @_import "\\*$"))
