(call_expression function: (identifier) @reference.call)
(call_expression function: (member_expression property: (property_identifier) @reference.call))
(new_expression constructor: (identifier) @reference.call)
(new_expression constructor: (member_expression property: (property_identifier) @reference.call))

(type_identifier) @reference.type
(type_parameter name: (type_identifier) @reference.none)

(extends_clause value: (identifier) @reference.base)
(extends_clause value: (member_expression property: (property_identifier) @reference.base))
(extends_type_clause type: (type_identifier) @reference.base)
(extends_type_clause type: (generic_type . (type_identifier) @reference.base))
(implements_clause (type_identifier) @reference.base)
(implements_clause (generic_type . (type_identifier) @reference.base))

(decorator (identifier) @reference.decorator)
(decorator (call_expression function: (identifier) @reference.decorator))
(decorator (call_expression function: (member_expression property: (property_identifier) @reference.decorator)))
