(comment) @comment
(decorator) @lead

(export_statement declaration: (_)) @wrap
(program (lexical_declaration (variable_declarator name: (identifier))) @wrap)
(program (variable_declaration (variable_declarator name: (identifier))) @wrap)
(export_statement (lexical_declaration (variable_declarator name: (identifier))) @wrap)
(export_statement (variable_declaration (variable_declarator name: (identifier))) @wrap)

(class_declaration name: (identifier) @name body: (_) @body) @definition.class
(function_declaration name: (identifier) @name body: (_) @body) @definition.function
(generator_function_declaration name: (identifier) @name body: (_) @body) @definition.function

(class_body (method_definition name: (_) @name body: (_) @body) @definition.method)
(class_body (field_definition property: (_) @name value: (_)? @value) @definition.field)
(class_body (field_definition property: (_) @name value: (arrow_function body: (_) @body)) @definition.method)

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

(program (_ (variable_declarator name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function))
(export_statement declaration: (_ (variable_declarator name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function))
(program (_ (variable_declarator name: (identifier) @name value: (class body: (_) @body)) @definition.class))
(export_statement declaration: (_ (variable_declarator name: (identifier) @name
  value: (class body: (_) @body)) @definition.class))

(program (expression_statement (assignment_expression
  left: (member_expression object: (identifier) property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function))
((program (expression_statement (assignment_expression
  left: (member_expression
    object: (member_expression object: (identifier) @scope property: (property_identifier) @_prototype)
    property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.method))
  (#eq? @_prototype "prototype"))

(export_statement (export_clause (export_specifier name: (identifier) @exported)))
(export_statement value: (identifier) @exported)
((assignment_expression left: (member_expression object: (identifier) @_exports property: (property_identifier) @exported))
  (#eq? @_exports "exports"))
((assignment_expression
  left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
  right: [(identifier) @exported
    (object (shorthand_property_identifier) @exported)
    (object (pair value: (identifier) @exported))])
  (#eq? @_module "module") (#eq? @_exports "exports"))
