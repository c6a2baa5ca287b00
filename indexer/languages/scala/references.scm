(call_expression function: (identifier) @reference.call)
(call_expression function: (field_expression field: (identifier) @reference.call))
(call_expression function: (generic_function function: (identifier) @reference.call))
(call_expression function: (generic_function function: (field_expression field: (identifier) @reference.call)))
(infix_expression operator: (identifier) @reference.call)
(instance_expression (type_identifier) @reference.call)
(instance_expression (generic_type type: (type_identifier) @reference.call))
(case_class_pattern type: (type_identifier) @reference.type)

(type_identifier) @reference.type

(extends_clause type: (type_identifier) @reference.base)
(extends_clause type: (generic_type type: (type_identifier) @reference.base))
(extends_clause type: (stable_type_identifier (type_identifier) @reference.base))
(annotation name: (type_identifier) @reference.decorator)
