// Package etude runs ExecuTorch programs (.pte files) with the C library etude, which pkg-config must find.
//
//	runtime, err := etude.NewRuntime(2)
//	defer runtime.Close()
//	program, err := runtime.Open("model.pte")
//	defer program.Close()
//	forward, err := program.Load("forward", nil)
//	defer forward.Close()
//	outputs, err := forward.Run(etude.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 2, 3))
//	y, err := etude.Data[float32](outputs[0].(*etude.Tensor))
//
// Ownership: close methods before their program, and programs before their runtime; Close says so where the order is
// another. Inputs are copied to memory of the method, outputs to memory of Go.
//
// Goroutines: everything may be used by several at once. A method runs one execution at a time, and so do methods of one
// program that share state.
//
// Errors are *Error; errors.Is(err, etude.NotFound) asks for a status.
package etude

/*
#cgo pkg-config: etude
#include <stdlib.h>
#include <string.h>
#include "etude/etude.h"
#include "etude/host.h"

// A report with room for long lists.
typedef struct report {
  etude_error error;
  char more[3584];
} report;

static report *report_new(void) {
  report *r = calloc(1, sizeof *r);
  if (r != NULL) {
    r->error.struct_size = sizeof *r;
    r->error.offset = ETUDE_NO_OFFSET;
  }
  return r;
}
static const char *report_message(const report *r) { return (const char *)r + offsetof(etude_error, message); }

// cgo can't reach a union, nor call through a pointer.
static void value_set_tensor(etude_value *v, etude_tensor *t) { v->tag = ETUDE_VALUE_TENSOR; v->as.tensor = t; }
static void value_set_int(etude_value *v, int64_t n) { v->tag = ETUDE_VALUE_INT; v->as.int_value = n; }
static void value_set_double(etude_value *v, double x) { v->tag = ETUDE_VALUE_DOUBLE; v->as.double_value = x; }
static void value_set_bool(etude_value *v, bool b) { v->tag = ETUDE_VALUE_BOOL; v->as.bool_value = b; }
static void value_set_string(etude_value *v, const char *s, uint32_t n) { v->tag = ETUDE_VALUE_STRING; v->as.string = s; v->count = n; }
static etude_tensor *value_tensor(const etude_value *v) { return v->as.tensor; }
static int64_t value_int(const etude_value *v) { return v->as.int_value; }
static double value_double(const etude_value *v) { return v->as.double_value; }
static bool value_bool(const etude_value *v) { return v->as.bool_value; }
static const char *value_string(const etude_value *v) { return v->as.string; }
static void loader_close(etude_data_loader *l) { if (l->close != NULL) l->close(l->self); }
static void option_set_bool(etude_option *o, bool b) { o->type = ETUDE_OPTION_BOOL; o->value.bool_value = b; }
static void option_set_int(etude_option *o, int64_t n) { o->type = ETUDE_OPTION_INT; o->value.int_value = n; }
static void option_set_string(etude_option *o, const char *s) { o->type = ETUDE_OPTION_STRING; strncpy(o->value.string, s, sizeof o->value.string - 1); }
static int32_t option_type(const etude_option *o) { return o->type; }
static bool option_bool(const etude_option *o) { return o->value.bool_value; }
static int64_t option_int(const etude_option *o) { return o->value.int_value; }
static const char *option_string(const etude_option *o) { return o->value.string; }
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Status is the kind of an Error; names and numbers are those of ExecuTorch's Error enumeration. It is an error itself,
// for errors.Is.
type Status int32

// Statuses of calls that failed.
const (
	Internal              Status = C.ETUDE_INTERNAL
	InvalidState          Status = C.ETUDE_INVALID_STATE
	NotSupported          Status = C.ETUDE_NOT_SUPPORTED
	NotImplemented        Status = C.ETUDE_NOT_IMPLEMENTED
	InvalidArgument       Status = C.ETUDE_INVALID_ARGUMENT
	InvalidType           Status = C.ETUDE_INVALID_TYPE
	OperatorMissing       Status = C.ETUDE_OPERATOR_MISSING
	AlreadyRegistered     Status = C.ETUDE_ALREADY_REGISTERED
	NotFound              Status = C.ETUDE_NOT_FOUND
	OutOfMemory           Status = C.ETUDE_OUT_OF_MEMORY
	AccessFailed          Status = C.ETUDE_ACCESS_FAILED
	InvalidProgram        Status = C.ETUDE_INVALID_PROGRAM
	InvalidExternalData   Status = C.ETUDE_INVALID_EXTERNAL_DATA
	OutOfResources        Status = C.ETUDE_OUT_OF_RESOURCES
	DelegateIncompatible  Status = C.ETUDE_DELEGATE_INCOMPATIBLE
	DelegateOutOfMemory   Status = C.ETUDE_DELEGATE_OUT_OF_MEMORY
	DelegateInvalidHandle Status = C.ETUDE_DELEGATE_INVALID_HANDLE
	Cancelled             Status = C.ETUDE_CANCELLED
)

// Error gives the name as ExecuTorch spells it: "InvalidArgument".
func (s Status) Error() string { return C.GoString(C.etude_status_name(C.etude_status(s))) }

// Error is what went wrong: one sentence with what, where, and what to do.
type Error struct {
	Status  Status
	Message string
	Subject string // the method, operator, backend or option key at fault; may be empty
	Offset  int64  // the byte of the file at fault, or -1
}

func (e *Error) Error() string { return e.Message }

// Is tells errors.Is whether e has a status.
func (e *Error) Is(target error) bool { return target == error(e.Status) }

func wrong(status Status, subject, format string, args ...any) error {
	return &Error{Status: status, Subject: subject, Message: fmt.Sprintf(format, args...), Offset: -1}
}

// call runs f with a report and turns what it wrote into an error.
func call(f func(*C.etude_error) C.etude_status) error {
	report := C.report_new()
	if report == nil {
		return wrong(OutOfMemory, "", "no memory for an error report")
	}
	defer C.free(unsafe.Pointer(report))
	status := f((*C.etude_error)(unsafe.Pointer(report)))
	if status == C.ETUDE_OK {
		return nil
	}
	offset := int64(-1)
	if uint64(report.error.offset) != uint64(C.ETUDE_NO_OFFSET) {
		offset = int64(report.error.offset)
	}
	return &Error{Status(status), C.GoString(C.report_message(report)), C.GoString(&report.error.subject[0]), offset}
}

// checkText refuses what a C string can't hold.
func checkText(text, what string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return wrong(InvalidArgument, "", "%s %q has a NUL inside", what, text)
	}
	return nil
}

// Version of the library that is linked: "MAJOR.MINOR.PATCH".
func Version() string { return C.GoString(C.etude_version()) }

// Cores that this process may use.
func Cores() int { return int(C.etude_host_core_count()) }

// Options of backends: by backend, then key. Values are bool, int, int64 or string.
type Options map[string]map[string]any

// rows are options in the form of C.
type rows struct {
	memory memory
	first  *C.etude_backend_options
	count  C.uint32_t
}

// memory of C that ends together.
type memory struct{ blocks []unsafe.Pointer }

func (m *memory) alloc(count int, size uintptr) unsafe.Pointer {
	block := C.calloc(C.size_t(count)+1, C.size_t(size)) // never nil for 0
	if block == nil {
		panic("etude: out of memory")
	}
	m.blocks = append(m.blocks, block)
	return block
}

func (m *memory) text(text string) *C.char {
	block := C.CString(text)
	m.blocks = append(m.blocks, unsafe.Pointer(block))
	return block
}

func (m *memory) free() {
	for _, block := range m.blocks {
		C.free(block)
	}
	m.blocks = nil
}

func fill(room []C.char, text, what string) error {
	if err := checkText(text, what); err != nil {
		return err
	}
	if len(text) >= len(room) {
		return wrong(InvalidArgument, text, "%s has at most %d bytes: %q", what, len(room)-1, text)
	}
	for i := 0; i < len(text); i++ {
		room[i] = C.char(text[i])
	}
	return nil
}

func (options Options) rows() (result *rows, err error) {
	r := &rows{count: C.uint32_t(len(options))}
	defer func() {
		if err != nil {
			r.memory.free()
		}
	}()
	all := unsafe.Slice((*C.etude_backend_options)(r.memory.alloc(len(options), C.sizeof_etude_backend_options)), len(options)+1)
	r.first = &all[0]
	at := 0
	for backend, keys := range options {
		items := unsafe.Slice((*C.etude_option)(r.memory.alloc(len(keys), C.sizeof_etude_option)), len(keys)+1)
		row := &all[at]
		at++
		row.items, row.count = &items[0], C.uint32_t(len(keys))
		if err := fill(row.backend[:], backend, "a backend's name"); err != nil {
			return nil, err
		}
		i := 0
		for key, value := range keys {
			item := &items[i]
			i++
			if err := fill(item.key[:], key, "an option's key"); err != nil {
				return nil, err
			}
			switch v := value.(type) {
			case bool:
				C.option_set_bool(item, C.bool(v))
			case int:
				C.option_set_int(item, C.int64_t(v))
			case int64:
				C.option_set_int(item, C.int64_t(v))
			case string:
				if err := checkText(v, "the value of option '"+key+"'"); err != nil {
					return nil, err
				}
				if len(v) >= C.ETUDE_OPTION_STRING_SIZE {
					return nil, wrong(InvalidArgument, key, "the value of option '%s' has more than %d bytes", key, C.ETUDE_OPTION_STRING_SIZE-1)
				}
				C.option_set_string(item, r.memory.text(v))
			default:
				return nil, wrong(InvalidType, key, "option '%s' is a %T: give a bool, int, int64 or string", key, value)
			}
		}
	}
	return r, nil
}

// children counts what was made from something that must end after it.
type children struct {
	mutex  sync.Mutex
	count  int
	closed bool
}

func (c *children) add(what string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return wrong(InvalidState, "", "the %s is closed", what)
	}
	c.count++
	return nil
}

func (c *children) remove() {
	c.mutex.Lock()
	c.count--
	c.mutex.Unlock()
}

// close runs end once, if there are no children.
func (c *children) close(what, of string, end func()) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.count > 0 {
		return wrong(InvalidState, "", "the %s has %d open %s: close them first", what, c.count, of)
	}
	if !c.closed {
		c.closed = true
		end()
	}
	return nil
}

// Runtime holds kernels, backends and process-wide options.
type Runtime struct {
	c        *C.etude_runtime
	children children
}

// NewRuntime makes a runtime with the portable kernels and built-in backends, whose loops run on so many threads (0 = 1),
// the calling one included, or on Cores if that is less.
func NewRuntime(threads int) (*Runtime, error) {
	if threads < 0 || threads > 1<<16 {
		return nil, wrong(InvalidArgument, "", "a runtime can't have %d threads", threads)
	}
	r := &Runtime{}
	err := call(func(e *C.etude_error) C.etude_status {
		return C.etude_host_runtime_create(C.uint32_t(threads), &r.c, e)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Close ends the runtime, whose programs must be closed.
func (r *Runtime) Close() error {
	return r.children.close("runtime", "programs", func() { C.etude_host_runtime_free(r.c) })
}

// Backends are the names of those that are registered.
func (r *Runtime) Backends() []string {
	names := []string{}
	for i := C.uint32_t(0); i < C.etude_runtime_backend_count(r.c); i++ {
		names = append(names, C.GoString(C.etude_runtime_backend_name(r.c, i)))
	}
	return names
}

// SetOptions sets process-wide options, all or none of them.
func (r *Runtime) SetOptions(options Options) error {
	rows, err := options.rows()
	if err != nil {
		return err
	}
	defer rows.memory.free()
	return call(func(e *C.etude_error) C.etude_status {
		return C.etude_runtime_set_option(r.c, rows.first, rows.count, e)
	})
}

// SetOption sets one process-wide option.
func (r *Runtime) SetOption(backend, key string, value any) error {
	return r.SetOptions(Options{backend: {key: value}})
}

// Option is the process-wide value of a key, or its default: a bool, int64 or string.
func (r *Runtime) Option(backend, key string) (any, error) {
	var m memory
	defer m.free()
	if err := checkText(backend, "the backend's name"); err != nil {
		return nil, err
	}
	item := (*C.etude_option)(m.alloc(1, C.sizeof_etude_option))
	if err := fill(item.key[:], key, "an option's key"); err != nil {
		return nil, err
	}
	name := m.text(backend)
	err := call(func(e *C.etude_error) C.etude_status { return C.etude_runtime_get_option(r.c, name, item, e) })
	if err != nil {
		return nil, err
	}
	switch C.option_type(item) {
	case C.ETUDE_OPTION_BOOL:
		return bool(C.option_bool(item)), nil
	case C.ETUDE_OPTION_INT:
		return int64(C.option_int(item)), nil
	default:
		return C.GoString(C.option_string(item)), nil
	}
}

// Program is a .pte file and its data files.
type Program struct {
	c        *C.etude_program
	runtime  *Runtime
	children children
	state    sync.Mutex // held by executions of methods that share state
}

// ProgramOption says how a program is opened.
type ProgramOption func(*programConfig)

type programConfig struct {
	dataFiles []string
	options   Options
}

// WithDataFiles adds .ptd files.
func WithDataFiles(paths ...string) ProgramOption {
	return func(c *programConfig) { c.dataFiles = append(c.dataFiles, paths...) }
}

// WithOptions gives options to every method that is loaded.
func WithOptions(options Options) ProgramOption {
	return func(c *programConfig) { c.options = options }
}

// Open opens a file.
func (r *Runtime) Open(path string, with ...ProgramOption) (*Program, error) {
	return r.load(func(loader *C.etude_data_loader, _ *memory) error { return openFile(path, loader) }, false, with)
}

// OpenBytes is Open over the bytes of a file, which are copied.
func (r *Runtime) OpenBytes(bytes []byte, with ...ProgramOption) (*Program, error) {
	return r.load(func(loader *C.etude_data_loader, m *memory) error {
		*loader = C.etude_data_from_memory(m.bytes(bytes), C.size_t(len(bytes)))
		return nil
	}, true, with)
}

func (m *memory) bytes(bytes []byte) unsafe.Pointer {
	block := m.alloc(len(bytes), 1)
	copy(unsafe.Slice((*byte)(block), len(bytes)), bytes)
	return block
}

func openFile(path string, loader *C.etude_data_loader) error {
	if err := checkText(path, "the path"); err != nil {
		return err
	}
	var m memory
	defer m.free()
	name := m.text(path)
	return call(func(e *C.etude_error) C.etude_status {
		return C.etude_data_from_file(name, C.ETUDE_FILE_MAP, loader, e)
	})
}

func (r *Runtime) load(first func(*C.etude_data_loader, *memory) error, copied bool, with []ProgramOption) (program *Program, err error) {
	var config programConfig
	for _, option := range with {
		option(&config)
	}
	rows, err := config.options.rows()
	if err != nil {
		return nil, err
	}
	defer rows.memory.free()
	if err := r.children.add("runtime"); err != nil {
		return nil, err
	}
	var m memory
	defer m.free()
	count := 1 + len(config.dataFiles)
	loaders := unsafe.Slice((*C.etude_data_loader)(m.alloc(count, C.sizeof_etude_data_loader)), count)
	opened := 0
	defer func() {
		if err != nil {
			for i := 0; i < opened; i++ {
				C.loader_close(&loaders[i])
			}
			r.children.remove()
		}
	}()
	if err := first(&loaders[0], &m); err != nil {
		return nil, err
	}
	for opened = 1; opened < count; opened++ {
		if err := openFile(config.dataFiles[opened-1], &loaders[opened]); err != nil {
			return nil, err
		}
	}
	c := (*C.etude_program_config)(m.alloc(1, C.sizeof_etude_program_config))
	c.struct_size = C.sizeof_etude_program_config
	if count > 1 {
		c.external, c.external_count = &loaders[1], C.uint32_t(count-1)
	}
	c.backend_options, c.backend_options_count = rows.first, rows.count
	c.copy = C.bool(copied)
	p := &Program{runtime: r}
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_program_load(r.c, &loaders[0], c, &p.c, e) })
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Close ends the program, whose methods must be closed.
func (p *Program) Close() error {
	return p.children.close("program", "methods", func() {
		C.etude_program_free(p.c)
		p.runtime.children.remove()
	})
}

// MethodNames are the names of the methods.
func (p *Program) MethodNames() []string {
	names := []string{}
	for i := C.uint32_t(0); i < C.etude_program_method_count(p.c); i++ {
		names = append(names, C.GoString(C.etude_program_method_name(p.c, i)))
	}
	return names
}

// Load loads a method; options (may be nil) override, key by key, those of the program.
func (p *Program) Load(name string, options Options) (*Method, error) {
	if err := checkText(name, "the method's name"); err != nil {
		return nil, err
	}
	rows, err := options.rows()
	if err != nil {
		return nil, err
	}
	defer rows.memory.free()
	if err := p.children.add("program"); err != nil {
		return nil, err
	}
	var m memory
	defer m.free()
	c := (*C.etude_method_config)(m.alloc(1, C.sizeof_etude_method_config))
	c.struct_size = C.sizeof_etude_method_config
	c.backend_options, c.backend_options_count = rows.first, rows.count
	method := &Method{program: p, name: name}
	text := m.text(name)
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_method_load(p.c, text, c, &method.c, e) })
	if err != nil {
		p.children.remove()
		return nil, err
	}
	info := C.etude_memory_info{struct_size: C.sizeof_etude_memory_info}
	C.etude_method_memory(method.c, &info)
	method.shares = info.shared > 0
	return method, nil
}

// Method is a loaded function of a program.
type Method struct {
	c       *C.etude_method
	program *Program
	name    string
	shares  bool       // state, with other methods
	mutex   sync.Mutex // held by an execution
	inputs  memory     // borrowed by the method
	closing sync.Mutex // held to touch c from outside of an execution
}

// Name of the method.
func (m *Method) Name() string { return m.name }

// Close ends the method, after the execution that may be going on.
func (m *Method) Close() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.closing.Lock()
	defer m.closing.Unlock()
	if m.c != nil {
		C.etude_method_free(m.c)
		m.c = nil
		m.inputs.free()
		m.program.children.remove()
	}
	return nil
}

// Cancel ends the execution that goes on in another goroutine, with Cancelled; where there is none, the next one.
func (m *Method) Cancel() {
	m.closing.Lock()
	defer m.closing.Unlock()
	if m.c != nil {
		C.etude_method_cancel(m.c)
	}
}

// take begins the use of the method by one goroutine; the function returned ends it.
func (m *Method) take() (func(), error) {
	m.mutex.Lock()
	if m.c == nil {
		m.mutex.Unlock()
		return nil, wrong(InvalidState, m.name, "method '%s' is closed", m.name)
	}
	if !m.shares {
		return m.mutex.Unlock, nil
	}
	m.program.state.Lock()
	return func() {
		m.program.state.Unlock()
		m.mutex.Unlock()
	}, nil
}

// Run sets all inputs, executes, and returns copies of the outputs. Inputs are *Tensor, int, int64, float64, bool, string
// or nil; outputs *Tensor, int64, float64, bool, string or nil.
func (m *Method) Run(inputs ...any) ([]any, error) {
	end, err := m.take()
	if err != nil {
		return nil, err
	}
	defer end()
	var next memory
	values := unsafe.Slice((*C.etude_value)(next.alloc(len(inputs), C.sizeof_etude_value)), len(inputs)+1)
	for i, input := range inputs {
		if err := next.value(&values[i], i, input); err != nil {
			next.free()
			return nil, err
		}
	}
	err = call(func(e *C.etude_error) C.etude_status {
		return C.etude_method_set_inputs(m.c, &values[0], C.uint32_t(len(inputs)), e)
	})
	if err != nil {
		next.free()
		return nil, err
	}
	m.inputs.free() // of the inputs before
	m.inputs = next
	return m.execute()
}

// Execute runs a method whose inputs are set, or that has none.
func (m *Method) Execute() ([]any, error) {
	end, err := m.take()
	if err != nil {
		return nil, err
	}
	defer end()
	return m.execute()
}

func (m *Method) execute() ([]any, error) {
	err := call(func(e *C.etude_error) C.etude_status { return C.etude_method_execute(m.c, e) })
	if err != nil {
		return nil, err
	}
	outputs := make([]any, C.etude_method_output_count(m.c))
	for i := range outputs {
		var value C.etude_value
		err := call(func(e *C.etude_error) C.etude_status {
			return C.etude_method_get_output(m.c, C.uint32_t(i), &value, e)
		})
		if err != nil {
			return nil, err
		}
		if outputs[i], err = copyOut(&value); err != nil {
			return nil, err
		}
	}
	return outputs, nil
}

// ResetState takes all state (mutable buffers) back to what it held when the program was loaded.
func (m *Method) ResetState() error {
	end, err := m.take()
	if err != nil {
		return err
	}
	defer end()
	return call(func(e *C.etude_error) C.etude_status { return C.etude_method_reset_state(m.c, C.UINT32_MAX, e) })
}

// value writes an input in the form of C.
func (m *memory) value(v *C.etude_value, index int, input any) error {
	switch x := input.(type) {
	case nil:
	case int:
		C.value_set_int(v, C.int64_t(x))
	case int64:
		C.value_set_int(v, C.int64_t(x))
	case float64:
		C.value_set_double(v, C.double(x))
	case bool:
		C.value_set_bool(v, C.bool(x))
	case string:
		C.value_set_string(v, m.text(x), C.uint32_t(len(x)))
	case *Tensor:
		return m.tensor(v, index, x)
	default:
		return wrong(InvalidType, "", "input %d is a %T: give a *Tensor, int, int64, float64, bool, string or nil", index, input)
	}
	return nil
}

func (m *memory) tensor(v *C.etude_value, index int, t *Tensor) error {
	rank := len(t.Sizes)
	if rank > C.ETUDE_MAX_RANK {
		return wrong(NotSupported, "", "input %d: a tensor has at most %d dimensions", index, C.ETUDE_MAX_RANK)
	}
	if len(t.DimOrder) != 0 && len(t.DimOrder) != rank {
		return wrong(InvalidArgument, "", "input %d: dim order %v does not name each dimension once", index, t.DimOrder)
	}
	want := int64(C.etude_scalar_size(C.int32_t(t.Type)))
	for _, size := range t.Sizes {
		if size < 0 || (size > 0 && want > (1<<40)/int64(size)) {
			return wrong(InvalidArgument, "", "input %d: a tensor can't have sizes %v", index, t.Sizes)
		}
		want *= int64(size)
	}
	if want != int64(len(t.Bytes)) {
		return wrong(InvalidArgument, "", "input %d: %d bytes of elements do not fill a tensor of sizes %v", index, len(t.Bytes), t.Sizes)
	}
	c := (*C.etude_tensor)(m.alloc(1, C.sizeof_etude_tensor))
	sizes := unsafe.Slice((*C.int32_t)(m.alloc(rank, 4)), rank+1)
	for i, size := range t.Sizes {
		sizes[i] = C.int32_t(size)
	}
	c.sizes = &sizes[0]
	if len(t.DimOrder) != 0 {
		c.dim_order = (*C.uint8_t)(m.bytes(t.DimOrder))
	}
	c.data, c.capacity = m.bytes(t.Bytes), C.size_t(len(t.Bytes))
	c.scalar_type, c.rank, c.flags = C.int8_t(t.Type), C.uint8_t(rank), C.ETUDE_TENSOR_READONLY
	C.value_set_tensor(v, c)
	return nil
}

// copyOut is an output as a value of Go.
func copyOut(v *C.etude_value) (any, error) {
	switch v.tag {
	case C.ETUDE_VALUE_NONE:
		return nil, nil
	case C.ETUDE_VALUE_INT:
		return int64(C.value_int(v)), nil
	case C.ETUDE_VALUE_DOUBLE:
		return float64(C.value_double(v)), nil
	case C.ETUDE_VALUE_BOOL:
		return bool(C.value_bool(v)), nil
	case C.ETUDE_VALUE_STRING:
		return C.GoStringN(C.value_string(v), C.int(v.count)), nil
	case C.ETUDE_VALUE_TENSOR:
		c := C.value_tensor(v)
		t := &Tensor{Type: ScalarType(c.scalar_type), Sizes: make([]int, c.rank), DimOrder: make([]byte, c.rank)}
		for i := range t.Sizes {
			t.Sizes[i] = int(unsafe.Slice(c.sizes, c.rank)[i])
			t.DimOrder[i] = byte(i)
			if c.dim_order != nil {
				t.DimOrder[i] = byte(unsafe.Slice(c.dim_order, c.rank)[i])
			}
		}
		size := int(C.etude_tensor_nbytes(c))
		t.Bytes = make([]byte, size)
		if size > 0 {
			copy(t.Bytes, unsafe.Slice((*byte)(c.data), size))
		}
		return t, nil
	default:
		return nil, wrong(NotSupported, "", "an output of kind %s", C.GoString(C.etude_value_kind_name(v.tag)))
	}
}
