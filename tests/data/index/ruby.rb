# frozen_string_literal: true

require "set"
require_relative "../lib/store"
autoload :Parser, "lager/parser"

module Lager
  VERSION = "1.2.0"

  # Raised when an article is missing. Carries the key.
  class MissingError < StandardError; end

  Point = Struct.new(:x, :y) do
    def distance(other) = Math.hypot(x - other.x, y - other.y)
  end

  module Countable
    def count_all(*items, **options, &block)
      items.sum { |item| block.call(item) }
    end
  end

  # Keeps articles by name.
  # Not thread safe.
  class Store < Base::Repository
    include Countable
    extend Enumerable

    attr_reader :größe, :name
    attr_accessor :state

    DEFAULTS = { limit: 10 }.freeze
    @@total = 0

    class << self
      def öffne(path, mode: "r")
        new(path).tap { |store| store.load!(mode) }
      end
    end

    def self.build(...) = new(...)

    def initialize(path)
      super()
      @path = path
      @items = Set.new
    end

    # Finds one article.
    def find(key, fallback = nil)
      @items.fetch(key) { raise MissingError, key }
    end

    def [](key)
      find(key)
    end

    def name=(value)
      @name = value.to_s
    end

    def empty? = @items.empty?

    alias_method :get, :find
    alias fetch find

    protected

    def compare(other)
      Lager::Sorter.compare(self, other)
    end

    private

    def prüfe!
      puts "checked #{größe}"
    end

    class Node
      def next_node; @next; end
    end
  end

  define_method(:helper) { |x| x }
end

def main(argv)
  Lager::Store.build(argv.first).find("ä")
end

main(ARGV) if $PROGRAM_NAME == __FILE__

class Karte
  attr_writer "farbe"
  private attr_reader :wert
end
