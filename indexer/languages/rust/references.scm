(call_expression function: (identifier) @reference.call)
(call_expression function: (field_expression field: (field_identifier) @reference.call))
(call_expression function: (scoped_identifier name: (identifier) @reference.call))
(call_expression function: (generic_function function: (identifier) @reference.call))
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @reference.call)))
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @reference.call)))
(macro_invocation macro: (identifier) @reference.call)
(macro_invocation macro: (scoped_identifier name: (identifier) @reference.call))
(struct_expression name: (type_identifier) @reference.call)

(type_identifier) @reference.type
(type_parameter name: (type_identifier) @reference.none)

(impl_item trait: (type_identifier) @reference.base)
(impl_item trait: (generic_type type: (type_identifier) @reference.base))
(impl_item trait: (scoped_type_identifier name: (type_identifier) @reference.base))
(trait_item bounds: (trait_bounds (type_identifier) @reference.base))

(attribute_item (attribute (identifier) @reference.attribute))
((attribute_item (attribute (identifier) @_derive arguments: (token_tree (identifier) @reference.attribute)))
  (#eq? @_derive "derive"))
