package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"example.com/shop/inventory"
)

/*
Config is read from the environment.

Nothing is required.
*/
type Config struct {
	Addr           string
	ReadTimeout    int
	WriteTimeout   int
	MaxBody        int64
	TLS            *TLSConfig
	AllowedOrigins []string
	debug          bool
}

// TLSConfig names the files.
type TLSConfig struct {
	CertFile string
	KeyFile  string
	Ciphers  []Cipher
}

// Cipher is a cipher's number.
type Cipher = uint16

const (
	headerID       = "X-Request-Id"
	HeaderVersion  = "X-Version"
	contentTypeKey = "Content-Type"
)

const (
	KB = 1 << (10 * (iota + 1))
	MB
	GB
)

// Server answers over HTTP.
type Server struct {
	http.Server
	config  Config
	store   inventory.Store
	routes  []route
	metrics Metrics
	log     *slog.Logger
	ready   atomic.Bool
}

type route struct {
	method, pattern string
	handler         handlerFunc
	middleware      []Middleware
}

type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// Middleware wraps a handler.
type Middleware func(next http.Handler) http.Handler

// Metrics are counters.
type Metrics struct {
	Requests  atomic.Int64
	Errors    atomic.Int64
	InFlight  atomic.Int32
	ByStatus  map[int]int64
	ByPattern map[string]int64
}

// HTTPError carries a status.
type HTTPError struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
	cause   error
}

func (e *HTTPError) Error() string { return e.Message }

func (e *HTTPError) Unwrap() error { return e.cause }

// Is compares statuses.
func (e *HTTPError) Is(target error) bool {
	other, ok := target.(*HTTPError)
	return ok && other.Status == e.Status
}

// Common errors.
var (
	ErrBadRequest   = &HTTPError{Status: http.StatusBadRequest, Message: "bad request"}
	ErrUnauthorized = &HTTPError{Status: http.StatusUnauthorized}
	errTooLarge     = &HTTPError{Status: http.StatusRequestEntityTooLarge}
)

// New wires a server. It does not listen yet.
func New(config Config, store inventory.Store, log *slog.Logger) (*Server, error) {
	s := &Server{config: config, store: store, log: log}
	s.Addr = config.Addr
	s.register()
	return s, nil
}

func (s *Server) register() {
	s.handle("GET", "/articles", s.listArticles)
	s.handle("GET", "/articles/{id}", s.getArticle)
	s.handle("PUT", "/articles/{id}", s.putArticle, limitBody(s.config.MaxBody))
}

func (s *Server) handle(method, pattern string, handler handlerFunc, middleware ...Middleware) {
	s.routes = append(s.routes, route{method, pattern, handler, middleware})
}

// ServeHTTP finds the route.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.metrics.Requests.Add(1)
	for i := range s.routes {
		if s.routes[i].matches(r) {
			s.answer(w, r, &s.routes[i])
			return
		}
	}
	http.NotFound(w, r)
}

func (r *route) matches(req *http.Request) bool {
	return r.method == req.Method && strings.HasPrefix(req.URL.Path, r.pattern)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, to *route) {
	if err := to.handler(w, r); err != nil {
		s.fail(w, err)
	}
}

func (s *Server) fail(w http.ResponseWriter, err error) {
	s.metrics.Errors.Add(1)
	writeJSON(w, statusOf(err), err)
}

func (s *Server) listArticles(w http.ResponseWriter, r *http.Request) error {
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		return ErrBadRequest
	}
	articles, err := s.store.List(r.Context(), inventory.Filter{Min: inventory.Quantity(limit)})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, articles)
}

func (s *Server) getArticle(w http.ResponseWriter, r *http.Request) error {
	article, err := s.store.Get(r.Context(), inventory.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, article)
}

func (s *Server) putArticle(w http.ResponseWriter, r *http.Request) error {
	var article inventory.Article
	if err := json.NewDecoder(r.Body).Decode(&article); err != nil {
		return ErrBadRequest
	}
	return s.store.Put(r.Context(), article)
}

// Ready tells whether it listens.
func (s *Server) Ready() bool { return s.ready.Load() }

func writeJSON(w http.ResponseWriter, status int, value any) error {
	w.Header().Set(contentTypeKey, "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(value)
}

func statusOf(err error) int {
	if e, ok := err.(*HTTPError); ok {
		return e.Status
	}
	return http.StatusInternalServerError
}

func limitBody(max int64) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, max)
			next.ServeHTTP(w, r)
		})
	}
}

// Chain applies middleware, the first outermost.
func Chain(handler http.Handler, middleware ...Middleware) http.Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		handler = middleware[i](handler)
	}
	return handler
}

type codec interface {
	Encode(value any) ([]byte, error)
	Decode(data []byte, value any) error
	ContentType() string
}

type jsonCodec struct{ indent string }

func (jsonCodec) Encode(value any) ([]byte, error)    { return json.Marshal(value) }
func (jsonCodec) Decode(data []byte, value any) error { return json.Unmarshal(data, value) }
func (c jsonCodec) ContentType() string               { return "application/json" }

var codecs = map[string]codec{"json": jsonCodec{}}

// Session belongs to one client.
type Session struct {
	ID      [16]byte
	User    string
	Expires int64
	values  map[string]any
}

// Sessions keeps them by id.
type Sessions interface {
	Find(id string) (*Session, bool)
	Drop(id string)
}

// Expired tells whether its time is over.
func (s *Session) Expired(now int64) bool { return now >= s.Expires }

func (s *Session) set(key string, value any) { s.values[key] = value }

// Version is set by the linker.
var Version = "dev"
