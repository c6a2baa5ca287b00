((command name: (command_name) @_source . argument: (word) @import.module) @import
  (#any-of? @_source "source" "."))
((command name: (command_name) @_source . argument: (_ [(word) (string_content)] @import.module .)) @import
  (#any-of? @_source "source" "."))
