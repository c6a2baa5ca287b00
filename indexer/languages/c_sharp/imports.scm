(using_directive) @import
(using_directive !name (identifier) @import.module)
(using_directive (qualified_name) @import.module)
