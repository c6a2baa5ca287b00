(call_expression function: (identifier) @reference.call)
(call_expression function: (field_expression field: (field_identifier) @reference.call))
(call_expression function: (parenthesized_expression (pointer_expression (identifier) @reference.call)))
(type_identifier) @reference.type
