(comment) @comment

(module name: (constant) @name body: (_)? @body) @definition.namespace
(module name: (scope_resolution scope: (_) @scope name: (constant) @name) body: (_)? @body) @definition.namespace
(class name: (constant) @name body: (_)? @body) @definition.class
(class name: (scope_resolution scope: (_) @scope name: (constant) @name) body: (_)? @body) @definition.class
(method name: (_) @name body: (_)? @body) @definition.method
(singleton_method name: (_) @name body: (_)? @body) @definition.method
(singleton_class) @container
(alias name: (identifier) @name) @definition.method
(call method: (identifier) (argument_list [(method) (singleton_method)])) @wrap
((call method: (identifier) @_access arguments: (argument_list (call method: (identifier) @_attr))) @wrap
  (#any-of? @_access "private" "protected" "public")
  (#any-of? @_attr "attr_reader" "attr_accessor" "attr_writer"))

(class "end" @body)
(module "end" @body)
(method "end" @body)

(assignment left: (constant) @name) @definition.constant
(assignment left: (constant) right: [(hash) (array) (string) (string_array) (symbol_array) (call !block)] @value)
((assignment left: (constant) @name right: (call receiver: (constant) @_struct method: (identifier) @_new
  block: (_) @body)) @definition.class
  (#any-of? @_struct "Struct" "Data" "Class" "Module") (#any-of? @_new "new" "define"))
(body_statement (assignment left: (class_variable) @name right: (_) @value) @definition.field)
((method name: (identifier) @_initialize body: (body_statement
  (assignment left: (instance_variable) @name right: (_) @value) @definition.field))
  (#eq? @_initialize "initialize"))
((call method: (identifier) @_attr 
  arguments: (argument_list [(simple_symbol) @name (string (string_content) @name)])) @definition.property
  (#any-of? @_attr "attr_reader" "attr_accessor" "attr_writer"))

((body_statement (identifier) @access) (#any-of? @access "private" "protected" "public"))
