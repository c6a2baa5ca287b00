(comment) @comment
(attribute_list) @lead

(namespace_definition name: (namespace_name) @name body: (_)? @body) @definition.namespace
(class_declaration name: (name) @name body: (_) @body) @definition.class
(interface_declaration name: (name) @name body: (_) @body) @definition.interface
(trait_declaration name: (name) @name body: (_) @body) @definition.trait
(enum_declaration name: (name) @name body: (_) @body) @definition.enum
(enum_case name: (name) @name value: (_)? @value) @definition.member
(function_definition name: (name) @name body: (_) @body) @definition.function
(method_declaration name: (name) @name body: (_)? @body) @definition.method
(const_declaration (const_element . (name) @name . (_) @value)) @definition.constant
(property_declaration
  (property_element name: (variable_name (name) @name) default_value: (_)? @value)) @definition.field
(property_promotion_parameter name: (variable_name (name) @name) default_value: (_)? @value) @definition.field
((function_call_expression function: (name) @_define
  arguments: (arguments . (argument (string (string_content) @name)))) @definition.constant (#eq? @_define "define"))
