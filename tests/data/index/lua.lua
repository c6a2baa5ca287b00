#!/usr/bin/env lua
-- Keeps articles by key.
local json = require("dkjson")
local Basis = require "lager.basis"
local util, log = require("lager.util"), require('lager.log')
require "strict"

local M = {}
M.VERSION = "1.2.0"
M._cache = {}
local MAX_ITEMS <const> = 1000
größe = 10

--- A store of articles. Not thread safe.
-- @type Store
local Store = setmetatable({}, { __index = Basis })
Store.__index = Store

--- Makes an empty store.
-- @param name string
function Store.new(name, ...)
  local self = setmetatable({}, Store)
  self.name = name
  self.items = {}
  return self
end

function Store:find(key, fallback)
  local function hilfe(n)
    return math.max(n, 0)
  end
  return self.items[key] or fallback or hilfe(1)
end

function Store:räume()
  self:find("x")
  Basis.räume(self)
end

Store.öffne = function(path)
  return Store.new(path):find("ä")
end

local function privat(a, b) return a + b end

local handler = function(event) log.info(event.name) end

M.tools = {
  zähle = function(t) return #t end,
  limit = 5,
  nested = {
    deep = function() end,
  },
}

function M.sub.start(args)
  print(privat(1, 2), json.encode(args))
end

function starte(args)
  M.sub.start { args }
end

--[[ Old names.
     Kept for callers. ]]
M.open = Store.öffne
M.Store = Store

return M
