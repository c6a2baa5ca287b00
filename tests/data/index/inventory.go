// Package inventory keeps the stock of several warehouses.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"
	"time"

	"example.com/shop/internal/clock"
	money "example.com/shop/pkg/money"
	_ "embed"
	. "math"
)

// Unit says how a quantity is counted. Most are pieces.
type Unit uint8

// Units.
const (
	Piece Unit = iota
	Kilogram
	Litre
	unknownUnit
)

// MaxLines bounds an order.
const MaxLines = 500

const (
	defaultTimeout = 5 * time.Second
	maxRetries     = 3
	Größe, Länge   = 1, 2
)

var (
	// ErrNotFound is returned for an unknown article.
	ErrNotFound = errors.New("inventory: not found")
	ErrConflict = errors.New("inventory: conflict")
	errClosed   = errors.New("inventory: closed")
)

var registry, Names = map[string]Factory{}, []string{"a", "b"}

var logger Logger = noLogger{}

type (
	// ID names an article.
	ID string
	// Quantity counts in thousandths of a unit.
	Quantity int64
	Handler  func(ctx context.Context, event Event) error
	Factory  = func(name string) (Store, error)
	pair[K comparable, V any] struct {
		key   K
		value V
	}
)

// Number is what can be summed.
type Number interface {
	~int | ~int64 | ~float64
}

// Logger writes lines.
type Logger interface {
	Debug(msg string, args ...any)
	Info(msg string, args ...any)
	Error(err error, msg string, args ...any)
}

// Reader reads articles. It is safe for concurrent use.
type Reader interface {
	Get(ctx context.Context, id ID) (*Article, error)
	List(ctx context.Context, filter Filter) ([]Article, error)
	Count() int
}

// Writer changes articles.
type Writer interface {
	Put(ctx context.Context, article Article) error
	Delete(ctx context.Context, id ID) error
}

// Store is both, and can be closed.
type Store interface {
	Reader
	Writer
	io.Closer
	Watch(handler Handler) (cancel func())
}

// Article is one thing in the stock.
type Article struct {
	ID       ID                `json:"id"`
	Name     string            `json:"name"`
	Price    money.Amount      `json:"price"`
	Stock    Quantity          `json:"stock"`
	Unit     Unit              `json:"unit"`
	Tags     []string          `json:"tags,omitempty"`
	Attrs    map[string]string `json:"attrs,omitempty"`
	größe    float64
	Modified time.Time
	dimensions struct {
		width, height int
	}
}

// Filter selects articles.
type Filter struct {
	Text     string
	Min, Max Quantity
	Tag      string
	Match    func(Article) bool
}

// Event tells what happened.
type Event struct {
	Kind    EventKind
	Article *Article
	At      time.Time
	Source  string
}

// EventKind is added, changed or removed.
type EventKind int

const (
	Added EventKind = iota + 1
	Changed
	Removed
)

func (k EventKind) String() string {
	switch k {
	case Added:
		return "added"
	case Changed:
		return "changed"
	}
	return "removed"
}

// String names the unit.
func (u Unit) String() string { return [...]string{"pc", "kg", "l", "?"}[u] }

// Memory is a Store without a disk.
type Memory struct {
	sync.RWMutex
	*options
	articles map[ID]Article
	handlers []Handler
	closed   bool
	clock    clock.Clock
	Stats    Stats
}

// Stats counts calls.
type Stats struct {
	Reads, Writes, Misses uint64
	Latency               Histogram[float64]
}

type options struct {
	timeout time.Duration
	retries int
	logger  Logger
}

// Option changes an option.
type Option func(*options)

// WithTimeout bounds every call.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) { o.timeout = timeout }
}

// WithLogger sets where lines go.
func WithLogger(logger Logger) Option {
	return func(o *options) { o.logger = logger }
}

func withRetries(n int) Option { return func(o *options) { o.retries = n } }

// NewMemory makes an empty store.
func NewMemory(opts ...Option) *Memory {
	o := &options{timeout: defaultTimeout, retries: maxRetries, logger: logger}
	for _, opt := range opts {
		opt(o)
	}
	return &Memory{options: o, articles: make(map[ID]Article), clock: clock.System()}
}

// Get finds one article. It returns ErrNotFound when there is none.
func (m *Memory) Get(ctx context.Context, id ID) (*Article, error) {
	m.RLock()
	defer m.RUnlock()
	article, ok := m.articles[id]
	if !ok {
		m.Stats.Misses++
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return &article, ctx.Err()
}

func (m *Memory) List(ctx context.Context, filter Filter) ([]Article, error) {
	var found []Article
	for _, article := range m.articles {
		if filter.matches(article) {
			found = append(found, article)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].ID < found[j].ID })
	return found, ctx.Err()
}

func (m *Memory) Count() int { return len(m.articles) }

func (m *Memory) Put(ctx context.Context, article Article) error {
	const local = 1
	var kind EventKind = Added
	type change struct{ before, after Article }
	if err := article.validate(); err != nil {
		return err
	}
	m.articles[article.ID] = article
	return m.emit(ctx, Event{Kind: kind, Article: &article, At: m.clock.Now()})
}

func (m *Memory) Delete(ctx context.Context, id ID) error {
	delete(m.articles, id)
	return m.emit(ctx, Event{Kind: Removed})
}

func (m *Memory) Watch(handler Handler) (cancel func()) {
	m.handlers = append(m.handlers, handler)
	return func() { m.handlers = nil }
}

func (m *Memory) Close() error {
	if m.closed {
		return errClosed
	}
	m.closed = true
	return nil
}

func (m *Memory) emit(ctx context.Context, event Event) (err error) {
	for _, handler := range m.handlers {
		err = errors.Join(err, handler(ctx, event))
	}
	return err
}

func (f Filter) matches(a Article) bool {
	return (f.Match == nil || f.Match(a)) && a.Stock >= f.Min
}

func (a *Article) validate() error {
	if a.ID == "" {
		return ErrConflict
	}
	return nil
}

// Größer compares two articles.
func (a Article) Größer(other Article) bool { return a.größe > other.größe }

// Histogram counts values in buckets.
type Histogram[T Number] struct {
	buckets []bucket[T]
	sum     T
	count   int
}

type bucket[T Number] struct {
	upTo  T
	count int
}

// Observe adds a value.
func (h *Histogram[T]) Observe(value T) {
	h.sum += value
	h.count++
}

// Mean is the mean, NaN without values.
func (h *Histogram[T]) Mean() float64 {
	if h.count == 0 {
		return NaN()
	}
	return float64(h.sum) / float64(h.count)
}

func (h *Histogram[_]) reset() { h.count = 0 }

// Sum adds numbers.
func Sum[T Number](values ...T) (total T) {
	for _, value := range values {
		total += value
	}
	return total
}

// Map applies f to all.
func Map[T, R any](values []T, f func(T) R) []R {
	mapped := make([]R, 0, len(values))
	for _, value := range values {
		mapped = append(mapped, f(value))
	}
	return mapped
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}

type noLogger struct{}

func (noLogger) Debug(string, ...any)        {}
func (noLogger) Info(string, ...any)         {}
func (noLogger) Error(error, string, ...any) {}

//go:embed schema.json
var schema []byte

//go:noescape
func checksum(data []byte) uint32

func init() {
	registry["memory"] = func(string) (Store, error) { return NewMemory(), nil }
}
