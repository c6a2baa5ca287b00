(decorated_definition) @wrap.plain
(comment) @comment

(class_definition name: (identifier) @name body: (block) @body) @definition.class
(function_definition name: (identifier) @name body: (block) @body) @definition.function

(class_definition body: (block . (expression_statement . (string) @doc)))
(function_definition body: (block . (expression_statement . (string) @doc)))

(module (expression_statement (assignment left: (identifier) @name right: (_)? @value) @definition.variable))
(class_definition body: (block
  (expression_statement (assignment left: (identifier) @name right: (_)? @value) @definition.variable)))
(type_alias_statement left: (type (identifier) @name)) @definition.type
(type_alias_statement left: (type (generic_type . (identifier) @name))) @definition.type

((class_definition body: (block (function_definition name: (identifier) @_init body: (block
    (expression_statement (assignment
      left: (attribute object: (identifier) @_self attribute: (identifier) @name)
      right: (_)? @value) @definition.field)))))
  (#eq? @_init "__init__") (#eq? @_self "self"))
