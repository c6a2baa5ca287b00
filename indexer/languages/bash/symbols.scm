(comment) @comment

(function_definition name: (word) @name body: (_) @body) @definition.function
(program (variable_assignment name: (variable_name) @name value: (_)? @value) @definition.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name value: (_)? @value))
  @definition.variable)
