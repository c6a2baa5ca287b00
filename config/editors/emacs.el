;; lsp-mode 9.0.1 or newer shows ghost text where the cursor rests; C-<return> takes it.
(with-eval-after-load 'lsp-mode
  (require 'lsp-inline-completion)
  (lsp-register-client
   (make-lsp-client :new-connection (lsp-stdio-connection '("foretype" "lsp"))
                    :activation-fn (lambda (&rest _) t)
                    :add-on? t
                    :priority -2
                    :server-id 'foretype))
  (setq lsp-inline-completion-idle-delay 0.1)
  (define-key lsp-inline-completion-active-map (kbd "C-<return>") #'lsp-inline-completion-accept)
  (add-hook 'lsp-mode-hook #'lsp-inline-completion-mode))

;; eglot knows one server for a mode; its completions come in the menu (M-TAB):
;; (add-to-list 'eglot-server-programs '(text-mode . ("foretype" "lsp")))
