(call_expression function: (identifier) @reference.call)
(call_expression function: (member_expression property: (property_identifier) @reference.call))
(new_expression constructor: (identifier) @reference.call)
(new_expression constructor: (member_expression property: (property_identifier) @reference.call))

(class_heritage (identifier) @reference.base)
(class_heritage (member_expression property: (property_identifier) @reference.base))

(decorator (identifier) @reference.decorator)
(decorator (call_expression function: (identifier) @reference.decorator))
(decorator (call_expression function: (member_expression property: (property_identifier) @reference.decorator)))

(jsx_opening_element name: (identifier) @reference.call (#match? @reference.call "^[A-Z]"))
(jsx_self_closing_element name: (identifier) @reference.call (#match? @reference.call "^[A-Z]"))
