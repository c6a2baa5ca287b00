(comment) @comment

(function_definition declarator: [
    (function_declarator declarator: (identifier) @name)
    (function_declarator declarator: (parenthesized_declarator (identifier) @name))
    (pointer_declarator (function_declarator declarator: (identifier) @name))
    (pointer_declarator (pointer_declarator (function_declarator declarator: (identifier) @name)))]
  body: (_) @body) @definition.function

(declaration declarator: (_)) @wrap
(declaration declarator: [
  (function_declarator declarator: (identifier) @name) @definition.function
  (pointer_declarator (function_declarator declarator: (identifier) @name)) @definition.function
  (pointer_declarator (pointer_declarator (function_declarator declarator: (identifier) @name))) @definition.function
  (identifier) @name @definition.variable
  (pointer_declarator declarator: (identifier) @name) @definition.variable
  (array_declarator declarator: (identifier) @name) @definition.variable
  (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (identifier) @name))) @definition.variable
  (init_declarator declarator: [
      (identifier) @name
      (pointer_declarator declarator: (identifier) @name)
      (array_declarator declarator: (identifier) @name)
      (pointer_declarator (array_declarator declarator: (identifier) @name))]
    value: (_) @value) @definition.variable])

(struct_specifier name: (type_identifier) @name body: (_) @body) @definition.struct
(union_specifier name: (type_identifier) @name body: (_) @body) @definition.struct
(enum_specifier name: (type_identifier) @name body: (_) @body) @definition.enum

(type_definition type: (struct_specifier !name body: (_) @body)
  declarator: [(type_identifier) @name (pointer_declarator (type_identifier) @name)]) @definition.struct
(type_definition type: (union_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @definition.struct
(type_definition type: (enum_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @definition.enum
(type_definition type: [(primitive_type) (sized_type_specifier) (type_identifier)
  (struct_specifier name: (_)) (union_specifier name: (_)) (enum_specifier name: (_))]) @wrap
(type_definition type: [(primitive_type) (sized_type_specifier) (type_identifier)
    (struct_specifier name: (_)) (union_specifier name: (_)) (enum_specifier name: (_))]
  declarator: [
    (type_identifier) @name @definition.type
    (pointer_declarator (type_identifier) @name) @definition.type
    (array_declarator declarator: (type_identifier) @name) @definition.type
    (function_declarator declarator: (type_identifier) @name) @definition.type
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name))) @definition.type])

(enumerator name: (identifier) @name value: (_)? @value) @definition.member
(field_declaration declarator: [
    (field_identifier) @name
    (pointer_declarator (field_identifier) @name)
    (array_declarator declarator: (field_identifier) @name)
    (pointer_declarator (pointer_declarator (field_identifier) @name))
    (pointer_declarator (array_declarator declarator: (field_identifier) @name))
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (field_identifier) @name)))]) @definition.field

(preproc_def name: (identifier) @name value: (_)? @value) @definition.macro
(preproc_function_def name: (identifier) @name value: (_)? @value) @definition.macro
