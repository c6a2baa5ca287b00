(comment) @comment

(function_declaration name: (identifier) @name body: (_)? @body) @definition.function
(function_declaration name: (dot_index_expression table: (_) @scope field: (identifier) @name)
  body: (_)? @body) @definition.function
(function_declaration name: (method_index_expression table: (_) @scope method: (identifier) @name)
  body: (_)? @body) @definition.method

; Tables are how a module hands out its functions: their `local` is no sign of privacy, so it stays outside.
(chunk (variable_declaration (assignment_statement
  (variable_list name: (identifier) @name)
  (expression_list . value: (table_constructor) @value)) @definition.variable) @wrap.plain)
((chunk (variable_declaration (assignment_statement
  (variable_list name: (identifier) @name)
  (expression_list . value: (function_call name: (identifier) @_function) @value)) @definition.variable) @wrap.plain)
  (#eq? @_function "setmetatable"))
(chunk (variable_declaration (assignment_statement
  (variable_list name: (identifier) @name)
  (expression_list . value: [(number) (string) (true) (false) (binary_expression)] @value))) @definition.variable)
(chunk (variable_declaration (assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition body: (_)? @body)))) @definition.function)

(chunk (assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition body: (_)? @body))) @definition.function)
(chunk (assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @scope field: (identifier) @name))
  (expression_list . value: (function_definition body: (_)? @body))) @definition.function)
(chunk (assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: [(number) (string) (true) (false) (table_constructor) (function_call)] @value))
  @definition.variable)
(chunk (assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @scope field: (identifier) @name))
  (expression_list . value: (_) @value)) @definition.variable)
(field name: (identifier) @name value: (function_definition body: (_)? @body)) @definition.function
