-- Neovim 0.12 or newer: ghost text by the built-in language client. <Tab> takes what is shown,
-- <M-]> and <M-[> look at others.
vim.lsp.config('foretype', { cmd = { 'foretype', 'lsp' }, root_markers = { '.git' } })
vim.lsp.enable('foretype')
vim.lsp.inline_completion.enable()

vim.keymap.set('i', '<Tab>', function()
  if not vim.lsp.inline_completion.get() then
    return '<Tab>'
  end
end, { expr = true, desc = 'Take the completion that is shown' })
for key, count in pairs({ ['<M-]>'] = 1, ['<M-[>'] = -1 }) do
  vim.keymap.set('i', key, function()
    vim.lsp.inline_completion.select({ count = count })
  end, { desc = 'Look at another completion' })
end
