" Before the plug-in ggml-org/llama.vim loads, in Vim 9.1 or Neovim. <Tab> takes what is shown, <S-Tab> its
" first line. Releases before the address was split say 'endpoint'.
let g:llama_config = get(g:, 'llama_config', {})
let g:llama_config.endpoint_fim = 'http://127.0.0.1:8012/infill'

" In Neovim with lazy.nvim:
" { 'ggml-org/llama.vim', init = function()
"     vim.g.llama_config = { endpoint_fim = 'http://127.0.0.1:8012/infill' }
" end }
