(call_expression function: (identifier) @reference.call)
(call_expression function: (field_expression field: (field_identifier) @reference.call))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @reference.call)))
(call_expression function: (template_function name: (identifier) @reference.call))
(call_expression function: (qualified_identifier name: [
  (identifier) @reference.call
  (template_function name: (identifier) @reference.call)
  (qualified_identifier name: (identifier) @reference.call)]))
(new_expression type: (type_identifier) @reference.call)
(new_expression type: (qualified_identifier name: (type_identifier) @reference.call))

(type_identifier) @reference.type
(type_parameter_declaration (type_identifier) @reference.none)
(optional_type_parameter_declaration name: (type_identifier) @reference.none)

(base_class_clause (type_identifier) @reference.base)
(base_class_clause (template_type name: (type_identifier) @reference.base))
(base_class_clause (qualified_identifier name: (type_identifier) @reference.base))
(base_class_clause (qualified_identifier name: (template_type name: (type_identifier) @reference.base)))
(attribute name: (identifier) @reference.attribute)
