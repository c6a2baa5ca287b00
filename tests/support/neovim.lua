-- A person in Neovim: edits at random over LSP, then takes a completion. Prints one line of JSON.
vim.opt.swapfile = false
local told, random = {}, vim.env.EDITS + 0
vim.cmd.edit(vim.env.FILE)
local here = vim.api.nvim_get_current_buf()
local id = vim.lsp.start({
  name = "foretype",
  cmd = vim.json.decode(vim.env.SERVER),
  handlers = { ["window/showMessage"] = function(_, message) table.insert(told, message.message) end },
})
local client = assert(vim.lsp.get_client_by_id(id))
assert(vim.wait(30000, function() return client.initialized end, 20))

local function ask()
  local cursor = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local answer = client:request_sync("textDocument/completion", cursor, 30000, here)
  return answer and answer.result and answer.result.items[1]
end

local pieces = { "a", "é", "😀", "你好", "\t", " ", "x = 1", "👩‍👧" }
math.randomseed(7)
for step = 1, random do
  local count, draw = vim.api.nvim_buf_line_count(here), math.random()
  local row, piece = math.random(0, count - 1), pieces[math.random(#pieces)]
  local line = vim.api.nvim_buf_get_lines(here, row, row + 1, false)[1]
  if draw < 0.5 then
    local at = vim.str_byteindex(line, "utf-32", math.random(0, vim.str_utfindex(line, "utf-32")))
    vim.api.nvim_buf_set_text(here, row, at, row, at, { piece })
  elseif draw < 0.65 then
    vim.api.nvim_buf_set_lines(here, row, row, false, { piece, "" })
  elseif draw < 0.85 then
    vim.api.nvim_buf_set_lines(here, row, math.min(count, row + math.random(3)), false, {})
  else
    vim.api.nvim_buf_set_lines(here, -1, -1, false, { "end" .. step })
  end
  if step % 20 == 0 then ask() end
end

local before = { "# é😀你", "def total(order):", "    return or" }
vim.api.nvim_buf_set_lines(here, 0, -1, false, before)
vim.api.nvim_win_set_cursor(0, { 3, #before[3] })
vim.opt.virtualedit = "onemore"
vim.api.nvim_win_set_cursor(0, { 3, #before[3] })
local item
assert(vim.wait(60000, function() item = ask(); return item ~= nil end, 20))
vim.lsp.util.apply_text_edits({ item.textEdit }, here, client.offset_encoding)
client:exec_cmd(item.command, { bufnr = here })
local found = { told = told, id = item.data, lines = vim.api.nvim_buf_get_lines(here, 0, -1, false), before = before }
found.encoding = client.offset_encoding
ask()
client:stop()
found.stopped = vim.wait(10000, function() return client:is_stopped() end, 20)
io.stdout:write(vim.json.encode(found) .. "\n")
vim.cmd("qall!")
