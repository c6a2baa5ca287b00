(comment) @comment
(decorator) @lead

(export_statement declaration: (_)) @wrap
(ambient_declaration [(function_signature) (module) (internal_module) (class_declaration)
  (abstract_class_declaration) (interface_declaration) (type_alias_declaration) (enum_declaration)
  (lexical_declaration) (variable_declaration)]) @wrap
(program (lexical_declaration (variable_declarator name: (identifier))) @wrap)
(program (variable_declaration (variable_declarator name: (identifier))) @wrap)
(export_statement (lexical_declaration (variable_declarator name: (identifier))) @wrap)
(export_statement (variable_declaration (variable_declarator name: (identifier))) @wrap)
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier))) @wrap)
(ambient_declaration (variable_declaration (variable_declarator name: (identifier))) @wrap)
(internal_module body: (statement_block (lexical_declaration (variable_declarator name: (identifier))) @wrap))

(class_declaration name: (type_identifier) @name body: (_) @body) @definition.class
(abstract_class_declaration name: (type_identifier) @name body: (_) @body) @definition.class
(interface_declaration name: (type_identifier) @name body: (_) @body) @definition.interface
(type_alias_declaration name: (type_identifier) @name value: (_) @value) @definition.type
(enum_declaration name: (identifier) @name body: (_) @body) @definition.enum
(enum_body name: [(property_identifier) (string)] @name @definition.member)
(enum_assignment name: [(property_identifier) (string)] @name value: (_) @value) @definition.member
(internal_module name: (_) @name body: (_) @body) @definition.namespace
(module name: (_) @name body: (_) @body) @definition.namespace

(function_declaration name: (identifier) @name body: (_) @body) @definition.function
(generator_function_declaration name: (identifier) @name body: (_) @body) @definition.function
(function_signature name: (identifier) @name) @definition.function

(class_body (method_definition name: (_) @name body: (_) @body) @definition.method)
(class_body (method_signature name: (_) @name) @definition.method)
(class_body (abstract_method_signature name: (_) @name) @definition.method)
(class_body (public_field_definition name: (_) @name value: (_)? @value) @definition.field)
(class_body (public_field_definition name: (_) @name value: (arrow_function body: (_) @body)) @definition.method)
(class_body (method_definition name: (property_identifier) @_constructor
  parameters: (formal_parameters
    (required_parameter (accessibility_modifier) pattern: (identifier) @name) @definition.field))
  (#eq? @_constructor "constructor"))
(interface_body (method_signature name: (_) @name) @definition.method)
(interface_body (property_signature name: (_) @name) @definition.field)
(type_alias_declaration value: (object_type (method_signature name: (_) @name) @definition.method))
(type_alias_declaration value: (object_type (property_signature name: (_) @name) @definition.field))

(program (lexical_declaration kind: "const"
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.constant))
(program (lexical_declaration kind: "let"
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.variable))
(program (variable_declaration
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.variable))
(export_statement declaration: (lexical_declaration kind: "const"
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.constant))
(export_statement declaration: (lexical_declaration kind: "let"
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.variable))
(export_statement declaration: (variable_declaration
  (variable_declarator name: (identifier) @name value: (_)? @value) @definition.variable))
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(ambient_declaration (lexical_declaration kind: "const"
  (variable_declarator name: (identifier) @name) @definition.constant))
(ambient_declaration (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(internal_module body: (statement_block
  (lexical_declaration (variable_declarator name: (identifier) @name value: (_)? @value) @definition.variable)))
(internal_module body: (statement_block (lexical_declaration kind: "const"
  (variable_declarator name: (identifier) @name) @definition.constant)))

(program (lexical_declaration (variable_declarator name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function))
(export_statement declaration: (lexical_declaration (variable_declarator name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function))
(program (lexical_declaration (variable_declarator name: (identifier) @name
  value: (class body: (_) @body)) @definition.class))
(export_statement declaration: (lexical_declaration (variable_declarator name: (identifier) @name
  value: (class body: (_) @body)) @definition.class))

(export_statement (export_clause (export_specifier name: (identifier) @exported)))
(export_statement value: (identifier) @exported)
