(comment) @comment

(type_declaration "type" . [(type_spec) (type_alias)] .) @wrap
(const_declaration "const" . (const_spec) .) @wrap
(var_declaration "var" . (var_spec) .) @wrap

(function_declaration name: (identifier) @name body: (_)? @body) @definition.function
(method_declaration receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @scope
    (generic_type type: (type_identifier) @scope)
    (pointer_type (type_identifier) @scope)
    (pointer_type (generic_type type: (type_identifier) @scope))]))
  name: (field_identifier) @name body: (_)? @body) @definition.method

(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @definition.struct
(type_spec name: (type_identifier) @name type: (interface_type "{" @body)) @definition.interface
(type_spec name: (type_identifier) @name type: (_)) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(interface_type (method_elem name: (field_identifier) @name) @definition.method)
(type_spec type: (struct_type (field_declaration_list
  (field_declaration name: (field_identifier) @name) @definition.field)))

(source_file (const_declaration (const_spec (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition.variable)))
(const_spec value: (_) @value)
(var_spec value: (_) @value)
