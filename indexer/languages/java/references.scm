(method_invocation name: (identifier) @reference.call)
(object_creation_expression type: (type_identifier) @reference.call)
(object_creation_expression type: (generic_type . (type_identifier) @reference.call))
(object_creation_expression type: (scoped_type_identifier (type_identifier) @reference.call .))
(method_reference (identifier) @reference.call .)

(type_identifier) @reference.type
(type_parameter (type_identifier) @reference.none)

(superclass (type_identifier) @reference.base)
(superclass (generic_type . (type_identifier) @reference.base))
(superclass (scoped_type_identifier (type_identifier) @reference.base .))
(super_interfaces (type_list (type_identifier) @reference.base))
(super_interfaces (type_list (generic_type . (type_identifier) @reference.base)))
(extends_interfaces (type_list (type_identifier) @reference.base))
(extends_interfaces (type_list (generic_type . (type_identifier) @reference.base)))

(annotation name: (identifier) @reference.decorator)
(marker_annotation name: (identifier) @reference.decorator)
