[(comment) (multiline_comment)] @comment
(modifiers (attribute) @lead)

(class_declaration declaration_kind: "class" name: (type_identifier) @name body: (_) @body) @definition.class
(class_declaration declaration_kind: "actor" name: (type_identifier) @name body: (_) @body) @definition.class
(class_declaration declaration_kind: "struct" name: (type_identifier) @name body: (_) @body) @definition.struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name body: (_) @body) @definition.enum
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @scope .)) @container
(class_declaration declaration_kind: "extension"
  name: (user_type (type_identifier) @scope . (type_arguments))) @container
(protocol_declaration name: (type_identifier) @name body: (_) @body) @definition.interface
(enum_entry name: (simple_identifier) @name) @definition.member
(typealias_declaration . (modifiers)? . name: (type_identifier) @name) @definition.type
(associatedtype_declaration name: (type_identifier) @name) @definition.type

(function_declaration . (modifiers)? . name: (simple_identifier) @name body: (_)? @body) @definition.function
(function_declaration name: [(custom_operator) "==" "<" "+" "-"] @name body: (_)? @body) @definition.function
(protocol_function_declaration . (modifiers)? . name: (simple_identifier) @name) @definition.function
(protocol_function_declaration name: [(custom_operator) "==" "<"] @name) @definition.function
(init_declaration "init" @name body: (_)? @body) @definition.constructor
(deinit_declaration "deinit" @name body: (_)? @body) @definition.method
(subscript_declaration "subscript" @name (computed_property)? @body) @definition.property
(macro_declaration . (modifiers)? . (simple_identifier) @name definition: (_)? @body) @definition.macro

(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.variable)
(class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.property)
(class_body (property_declaration name: (pattern (pattern (simple_identifier) @name))) @definition.property)
(enum_class_body (property_declaration name: (pattern bound_identifier: (simple_identifier) @name))
  @definition.property)
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @definition.property
(property_declaration value: (_) @value)
(property_declaration computed_value: (_) @body)
(property_declaration (willset_didset_block) @body)
