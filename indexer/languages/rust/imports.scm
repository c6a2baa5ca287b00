(use_declaration argument: (_) @import.tree) @import
(mod_item name: (identifier) @import.module !body) @import
(extern_crate_declaration name: (identifier) @import.module) @import
