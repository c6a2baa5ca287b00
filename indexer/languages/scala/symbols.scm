[(comment) (block_comment)] @comment
(annotation) @lead

(package_clause name: (package_identifier) @name body: (_) @body) @definition.namespace
(package_object name: (_) @name body: (_)? @body) @definition.class
(class_definition name: (_) @name body: (_)? @body) @definition.class
(object_definition name: (_) @name body: (_)? @body) @definition.class
(trait_definition name: (_) @name body: (_)? @body) @definition.trait
(enum_definition name: (_) @name body: (_) @body) @definition.enum
(simple_enum_case name: (identifier) @name) @definition.member
(full_enum_case name: (identifier) @name) @definition.member
(type_definition name: (type_identifier) @name) @definition.type
(given_definition name: (identifier) @name body: (_)? @body) @definition.variable

(function_definition name: (_) @name body: (_) @body) @definition.function
(function_declaration name: (_) @name) @definition.function
(class_parameter ["val" "var"] name: (identifier) @name) @definition.property

(template_body [
  (val_definition pattern: (identifier) @name)
  (var_definition pattern: (identifier) @name)
  (val_definition pattern: (tuple_pattern (identifier) @name))
  (val_definition pattern: (identifiers (identifier) @name))
  (val_declaration name: (identifier) @name)
  (var_declaration name: (identifier) @name)
] @definition.property)
(enum_body [
  (val_definition pattern: (identifier) @name)
  (var_definition pattern: (identifier) @name)
] @definition.property)
(compilation_unit [
  (val_definition pattern: (identifier) @name)
  (var_definition pattern: (identifier) @name)
] @definition.variable)
(val_definition value: (_) @value)
(var_definition value: (_) @value)
