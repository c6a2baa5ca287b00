(comment) @comment
(attribute_list) @lead

(namespace_declaration name: (_) @name body: (_) @body) @definition.namespace
(file_scoped_namespace_declaration name: (_) @name) @definition.namespace
(class_declaration name: (identifier) @name body: (_)? @body) @definition.class
(record_declaration name: (identifier) @name body: (_)? @body) @definition.class
(struct_declaration name: (identifier) @name body: (_)? @body) @definition.struct
(interface_declaration name: (identifier) @name body: (_)? @body) @definition.interface
(enum_declaration name: (identifier) @name body: (_)? @body) @definition.enum
(enum_member_declaration name: (identifier) @name) @definition.member
(enum_member_declaration value: (_) @value)
(delegate_declaration name: (identifier) @name) @definition.type
; A record's parameters are public properties: the bracket opens a section whose members can be seen.
(record_declaration (parameter_list "(" @access (parameter name: (identifier) @name) @definition.property))

(constructor_declaration name: (identifier) @name body: (_)? @body) @definition.constructor
(destructor_declaration name: (identifier) @name body: (_)? @body) @definition.method
(method_declaration name: (identifier) @name body: (_)? @body) @definition.method
(local_function_statement name: (identifier) @name body: (_)? @body) @definition.function
(operator_declaration operator: _ @name body: (_)? @body) @definition.method
(conversion_operator_declaration type: (_) @name body: (_)? @body) @definition.method

(property_declaration name: (identifier) @name accessors: (_)? @body) @definition.property
(property_declaration value: (arrow_expression_clause) @body)
(property_declaration value: (_) @value)
(indexer_declaration "this" @name accessors: (_)? @body) @definition.property
(indexer_declaration value: (arrow_expression_clause) @body)
(event_declaration name: (identifier) @name accessors: (_)? @body) @definition.property
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @definition.property
((field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @definition.field
  (#not-match? @definition.field "^[^=(]*\\bconst\\s"))
(field_declaration (modifier "const") (variable_declaration (variable_declarator name: (identifier) @name)))
  @definition.constant
(field_declaration (variable_declaration (variable_declarator "=" . (_) @value)))
