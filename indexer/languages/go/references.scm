(call_expression function: (identifier) @reference.call)
(call_expression function: (selector_expression field: (field_identifier) @reference.call))
(call_expression function: (parenthesized_expression (identifier) @reference.call))

(type_identifier) @reference.type
(type_parameter_declaration name: (identifier) @reference.none)

(type_spec type: (struct_type (field_declaration_list
  (field_declaration !name type: (type_identifier) @reference.base))))
(type_spec type: (struct_type (field_declaration_list
  (field_declaration !name type: (qualified_type name: (type_identifier) @reference.base)))))
(interface_type (type_elem . (type_identifier) @reference.base .))
(interface_type (type_elem . (qualified_type name: (type_identifier) @reference.base) .))
