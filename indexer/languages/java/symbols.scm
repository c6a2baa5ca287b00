(line_comment) @comment
(block_comment) @comment
(modifiers [(annotation) (marker_annotation)] @lead)

(class_declaration name: (identifier) @name body: (_) @body) @definition.class
(record_declaration name: (identifier) @name body: (_) @body) @definition.class
(interface_declaration name: (identifier) @name body: (_) @body) @definition.interface
(annotation_type_declaration name: (identifier) @name body: (_) @body) @definition.interface
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum
(enum_constant name: (identifier) @name body: (_)? @body) @definition.member
(method_declaration name: (identifier) @name body: (_)? @body) @definition.method
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name body: (_) @body) @definition.constructor
(compact_constructor_declaration name: (identifier) @name body: (_) @body) @definition.constructor
(record_declaration parameters: (formal_parameters
  (formal_parameter name: (identifier) @name) @definition.field))

(field_declaration) @wrap
(field_declaration declarator: (variable_declarator name: (identifier) @name value: (_)? @value) @definition.field)
(constant_declaration) @wrap
(constant_declaration
  declarator: (variable_declarator name: (identifier) @name value: (_)? @value) @definition.constant)
