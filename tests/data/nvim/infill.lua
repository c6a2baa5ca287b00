-- A client of `/infill` in a real editor: asks while typing, shows ghost text, <Tab> takes it.
-- Its wire is llama.vim's: lines above, line up to the cursor, the rest; one connection per request.
local port = tonumber(vim.env.FORETYPE_TEST_PORT)
local space = vim.api.nvim_create_namespace('infill')
Asked, Answered, Ghost = 0, 0, ''

local function hide()
  Ghost = ''
  vim.api.nvim_buf_clear_namespace(0, space, 0, -1)
end

local function show(reply, row, col)
  if reply.content == '' or vim.fn.mode() ~= 'i' then
    return
  end
  local lines = vim.split(reply.content, '\n')
  local below = vim.tbl_map(function(line) return { { line, 'Comment' } } end, vim.list_slice(lines, 2))
  vim.api.nvim_buf_set_extmark(0, space, row - 1, col, {
    virt_text = { { lines[1], 'Comment' } },
    virt_text_pos = 'inline',
    virt_lines = #below > 0 and below or nil,
  })
  Ghost = reply.content
end

local function ask()
  hide()
  Asked = Asked + 1
  local number, row, col = Asked, unpack(vim.api.nvim_win_get_cursor(0))
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, true)
  local line = lines[row]
  local above = table.concat(vim.list_slice(lines, 1, row - 1), '\n') .. (row > 1 and '\n' or '')
  local below = table.concat(vim.list_slice(lines, row + 1), '\n') .. '\n'
  local body = vim.json.encode({
    id_slot = 0, input_prefix = above, prompt = line:sub(1, col), input_suffix = line:sub(col + 1) .. '\n' .. below,
    input_extra = {}, n_predict = 24, stop = {}, n_indent = #line:match('^%s*'), top_k = 40, top_p = 0.9,
    samplers = { 'top_k', 'top_p', 'infill' }, stream = false, cache_prompt = true, t_max_prompt_ms = 500,
    t_max_predict_ms = 5000, response_fields = { 'content', 'timings/prompt_n', 'truncated' },
  })
  local got, tcp = {}, vim.uv.new_tcp()
  tcp:connect('127.0.0.1', port, function(failure)
    assert(not failure, failure)
    tcp:write(table.concat({
      'POST /infill HTTP/1.1', 'Host: 127.0.0.1:' .. port, 'User-Agent: nvim-test/1', 'Connection: close',
      'Content-Type: application/json', 'Content-Length: ' .. #body, '', body,
    }, '\r\n'))
    tcp:read_start(function(broken, data)
      assert(not broken, broken)
      if data then
        table.insert(got, data)
        return
      end
      tcp:close()
      vim.schedule(function()
        local reply = vim.json.decode(table.concat(got):match('\r\n\r\n(.*)$'))
        if number == Asked and reply.content then
          Answered = number
          show(reply, row, col)
        end
      end)
    end)
  end)
end

vim.api.nvim_create_autocmd({ 'InsertEnter', 'TextChangedI' }, { callback = ask })
vim.keymap.set('i', '<Tab>', function()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local lines = vim.split(Ghost, '\n')
  hide()
  vim.api.nvim_buf_set_text(0, row - 1, col, row - 1, col, lines)
  vim.api.nvim_win_set_cursor(0, { row + #lines - 1, #lines == 1 and col + #lines[1] or #lines[#lines] })
end)
