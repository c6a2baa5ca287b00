[(line_comment) (block_comment)] @comment
(modifiers (annotation) @lead)

(class_declaration . "class" name: (identifier) @name) @definition.class
((class_declaration . (modifiers) @_modifiers "class" name: (identifier) @name) @definition.class
  (#not-match? @_modifiers "enum$"))
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name) @definition.enum
(class_declaration "interface" name: (identifier) @name) @definition.interface
(object_declaration name: (identifier) @name) @definition.class
(companion_object name: (identifier) @name) @definition.class
(class_declaration [(class_body) (enum_class_body)] @body)
(object_declaration (class_body) @body)
(companion_object (class_body) @body)
(enum_entry (identifier) @name) @definition.member
(enum_entry (class_body) @body)
(type_alias type: (identifier) @name) @definition.type

(function_declaration name: (identifier) @name (function_body)? @body) @definition.function
(secondary_constructor "constructor" @name (block)? @body) @definition.constructor
(class_parameter ["val" "var"] . (identifier) @name) @definition.property

(source_file (property_declaration (variable_declaration . (identifier) @name)) @definition.variable)
(source_file (property_declaration (multi_variable_declaration (variable_declaration . (identifier) @name)))
  @definition.variable)
(class_body (property_declaration (variable_declaration . (identifier) @name)) @definition.property)
(class_body (property_declaration (multi_variable_declaration (variable_declaration . (identifier) @name)))
  @definition.property)
(enum_class_body (property_declaration (variable_declaration . (identifier) @name)) @definition.property)
(property_declaration "=" . (_) @value)
(property_declaration [(getter) (setter) (property_delegate)] @body)
