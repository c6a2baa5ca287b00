(comment) @comment
(attribute_declaration) @lead

(template_declaration) @wrap
(field_declaration_list (access_specifier) @access)

(function_definition declarator: (function_declarator declarator: [
    (identifier) @name
    (field_identifier) @name
    (operator_name) @name
    (destructor_name) @name
    (qualified_identifier scope: (_) @scope name: (identifier) @name)
    (qualified_identifier scope: (_) @scope name: (operator_name) @name)
    (qualified_identifier scope: (_) @scope name: (destructor_name) @name)
    (qualified_identifier name: (qualified_identifier scope: (_) @scope name: (identifier) @name))
    (qualified_identifier name: (qualified_identifier scope: (_) @scope name: (operator_name) @name))
    (qualified_identifier name: (qualified_identifier scope: (_) @scope name: (destructor_name) @name))
    (template_function name: (identifier) @name)])) @definition.function
(function_definition declarator: (pointer_declarator (function_declarator declarator: [
    (identifier) @name
    (field_identifier) @name
    (operator_name) @name
    (qualified_identifier scope: (_) @scope name: (identifier) @name)
    (qualified_identifier scope: (_) @scope name: (operator_name) @name)
    (qualified_identifier name: (qualified_identifier scope: (_) @scope name: (identifier) @name))
    (qualified_identifier name: (qualified_identifier scope: (_) @scope name: (operator_name) @name))]))) @definition.function
(function_definition declarator: (reference_declarator (function_declarator declarator: [
    (identifier) @name
    (field_identifier) @name
    (operator_name) @name
    (qualified_identifier scope: (_) @scope name: (identifier) @name)
    (qualified_identifier scope: (_) @scope name: (operator_name) @name)
    (qualified_identifier name: (qualified_identifier scope: (_) @scope name: (identifier) @name))
    (qualified_identifier name: (qualified_identifier scope: (_) @scope name: (operator_name) @name))]))) @definition.function
(function_definition body: (_) @body)
(function_definition (field_initializer_list) @body)

(declaration declarator: (_)) @wrap
(declaration declarator: [
  (function_declarator declarator: (identifier) @name) @definition.function
  (function_declarator declarator: (operator_name) @name) @definition.function
  (function_declarator declarator: (destructor_name) @name) @definition.function
  (pointer_declarator (function_declarator declarator: (identifier) @name)) @definition.function
  (pointer_declarator (function_declarator declarator: (operator_name) @name)) @definition.function
  (reference_declarator (function_declarator declarator: (identifier) @name)) @definition.function
  (reference_declarator (function_declarator declarator: (operator_name) @name)) @definition.function
  (identifier) @name @definition.variable
  (pointer_declarator declarator: (identifier) @name) @definition.variable
  (array_declarator declarator: (identifier) @name) @definition.variable
  (init_declarator declarator: [
      (identifier) @name
      (pointer_declarator declarator: (identifier) @name)
      (reference_declarator (identifier) @name)
      (array_declarator declarator: (identifier) @name)
      (qualified_identifier scope: (_) @scope name: (identifier) @name)]
    value: (_) @value) @definition.variable])

(namespace_definition name: (_) @name body: (_) @body) @definition.namespace
(class_specifier name: [
    (type_identifier) @name
    (template_type name: (type_identifier) @name)
    (qualified_identifier scope: (_) @scope name: (type_identifier) @name)]
  body: (_) @body) @definition.class
(struct_specifier name: [
    (type_identifier) @name
    (template_type name: (type_identifier) @name)
    (qualified_identifier scope: (_) @scope name: (type_identifier) @name)]
  body: (_) @body) @definition.struct
(union_specifier name: (type_identifier) @name body: (_) @body) @definition.struct
(enum_specifier name: (type_identifier) @name body: (_) @body) @definition.enum
(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name (_) @body .) @definition.type

(type_definition type: (struct_specifier !name body: (_) @body)
  declarator: [(type_identifier) @name (pointer_declarator (type_identifier) @name)]) @definition.struct
(type_definition type: (enum_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @definition.enum
(type_definition type: [(primitive_type) (sized_type_specifier) (type_identifier) (qualified_identifier)
  (template_type) (struct_specifier name: (_)) (union_specifier name: (_)) (enum_specifier name: (_))]) @wrap
(type_definition type: [(primitive_type) (sized_type_specifier) (type_identifier) (qualified_identifier)
    (template_type) (struct_specifier name: (_)) (union_specifier name: (_)) (enum_specifier name: (_))]
  declarator: [
    (type_identifier) @name @definition.type
    (pointer_declarator (type_identifier) @name) @definition.type
    (function_declarator declarator: (type_identifier) @name) @definition.type
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name))) @definition.type])

(enumerator name: (identifier) @name value: (_)? @value) @definition.member
(field_declaration declarator: [
    (function_declarator declarator: (field_identifier) @name)
    (function_declarator declarator: (operator_name) @name)
    (pointer_declarator (function_declarator declarator: (field_identifier) @name))
    (pointer_declarator (function_declarator declarator: (operator_name) @name))
    (reference_declarator (function_declarator declarator: (field_identifier) @name))
    (reference_declarator (function_declarator declarator: (operator_name) @name))]) @definition.method
(field_declaration declarator: [
    (field_identifier) @name
    (pointer_declarator (field_identifier) @name)
    (reference_declarator (field_identifier) @name)
    (array_declarator declarator: (field_identifier) @name)
    (function_declarator declarator: (parenthesized_declarator
      (pointer_declarator declarator: (field_identifier) @name)))]) @definition.field

(preproc_def name: (identifier) @name value: (_)? @value) @definition.macro
(preproc_function_def name: (identifier) @name value: (_)? @value) @definition.macro
