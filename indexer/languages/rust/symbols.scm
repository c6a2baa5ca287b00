(line_comment) @comment
(block_comment) @comment
(attribute_item) @lead

(function_item name: (identifier) @name body: (_) @body) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(struct_item name: (type_identifier) @name body: (field_declaration_list) @body) @definition.struct
(struct_item name: (type_identifier) @name) @definition.struct
(union_item name: (type_identifier) @name body: (_) @body) @definition.struct
(enum_item name: (type_identifier) @name body: (_) @body) @definition.enum
(trait_item name: (type_identifier) @name body: (_) @body) @definition.trait
(mod_item name: (identifier) @name body: (_)? @body) @definition.module
(type_item name: (type_identifier) @name) @definition.type
(associated_type name: (type_identifier) @name) @definition.type
(macro_definition name: (identifier) @name (macro_rule)? @body) @definition.macro
(source_file (const_item name: (identifier) @name value: (_)? @value) @definition.constant)
(source_file (static_item name: (identifier) @name value: (_)? @value) @definition.variable)
(declaration_list (const_item name: (identifier) @name value: (_)? @value) @definition.constant)
(declaration_list (static_item name: (identifier) @name value: (_)? @value) @definition.variable)
(enum_variant name: (identifier) @name) @definition.member
(field_declaration name: (field_identifier) @name) @definition.field

(impl_item) @container
(impl_item trait: (_) @access)
(impl_item type: [(type_identifier) (primitive_type)] @scope)
(impl_item type: (generic_type type: (type_identifier) @scope))
(impl_item type: (scoped_type_identifier name: (type_identifier) @scope))
(impl_item type: (reference_type type: (type_identifier) @scope))
