package etude

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"sort"
	"unsafe"
)

// Options of backends: by backend, then key. Values are bool, int, int64 or string.
type Options map[string]map[string]any

// rows are options in the form of C.
type rows struct {
	memory memory
	first  *C.etude_backend_options
	count  C.uint32_t
}

// sorted are the keys of a map, so that of several errors the same one is told of each time.
func sorted[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
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
	for i, backend := range sorted(options) {
		list := r.memory.options(len(options[backend]))
		for _, key := range sorted(options[backend]) {
			if err := r.memory.add(list, key, options[backend][key]); err != nil {
				return nil, err
			}
		}
		if err := checkText(backend, "the backend's name"); err != nil {
			return nil, err
		}
		name := r.memory.text(backend)
		err := call(func(e *C.etude_error) C.etude_status { return C.etude_backend_options_init(&all[i], name, list, e) })
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// options is an empty container for so many.
func (m *memory) options(count int) *C.etude_options {
	list := (*C.etude_options)(m.alloc(1, C.sizeof_etude_options))
	C.etude_options_init(list, (*C.etude_option)(m.alloc(count, C.sizeof_etude_option)), C.uint32_t(count))
	return list
}

// add appends an option.
func (m *memory) add(list *C.etude_options, key string, value any) error {
	if err := checkText(key, "the key"); err != nil {
		return err
	}
	name := m.text(key)
	return call(func(e *C.etude_error) C.etude_status {
		switch v := value.(type) {
		case bool:
			return C.etude_options_add_bool(list, name, C.bool(v), e)
		case int:
			return C.etude_options_add_int(list, name, C.int64_t(v), e)
		case int64:
			return C.etude_options_add_int(list, name, C.int64_t(v), e)
		case string:
			if err := checkText(v, "the value"); err != nil {
				return C.report_fail(e, C.ETUDE_INVALID_ARGUMENT, m.text(err.Error()), name)
			}
			return C.etude_options_add_string(list, name, m.text(v), e)
		default:
			text := fmt.Sprintf("option '%s' is a %T: give a bool, int, int64 or string", key, value)
			return C.report_fail(e, C.ETUDE_INVALID_TYPE, m.text(text), name)
		}
	})
}

// optionValue is the value of an option as one of Go.
func optionValue(kind C.int32_t, value *C.etude_option_value) any {
	switch kind {
	case C.ETUDE_OPTION_BOOL:
		return bool(C.option_bool(value))
	case C.ETUDE_OPTION_INT:
		return int64(C.option_int(value))
	default:
		return C.GoString(C.option_string(value))
	}
}

// SetOptions sets process-wide options, all or none of them.
func (r *Runtime) SetOptions(options Options) error {
	end, err := r.hold()
	if err != nil {
		return err
	}
	defer end()
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
	end, err := r.hold()
	if err != nil {
		return nil, err
	}
	defer end()
	var m memory
	defer m.free()
	if err := checkText(backend, "the backend's name"); err != nil {
		return nil, err
	}
	list := m.options(1)
	if err := m.add(list, key, false); err != nil {
		return nil, err
	}
	name := m.text(backend)
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_runtime_get_option(r.c, name, list.items, e) })
	if err != nil {
		return nil, err
	}
	return optionValue(C.option_type(list.items), &list.items.value), nil
}

// ResetOptions takes a key of a backend back to its default; the empty key takes all of them.
func (r *Runtime) ResetOptions(backend, key string) error {
	end, err := r.hold()
	if err != nil {
		return err
	}
	defer end()
	var m memory
	defer m.free()
	if err := checkText(backend+key, "the backend's name or the key"); err != nil {
		return err
	}
	name, text := m.text(backend), (*C.char)(nil)
	if key != "" {
		text = m.text(key)
	}
	return call(func(e *C.etude_error) C.etude_status { return C.etude_runtime_reset_option(r.c, name, text, e) })
}

// OptionSchema is an option that a backend understands.
type OptionSchema struct {
	Key, Help        string
	Default          any      // a bool, int64 or string, which is the option's type
	Minimum, Maximum int64    // of an int; both 0 = any
	Choices          []string // strings allowed; for an int the names of Minimum, Minimum + 1, …
	Process, Load    bool     // may it be set process-wide, and at load?
	ReadOnly         bool
	EffectNow        bool // a process-wide change reaches methods that are loaded already
}

// OptionSchema lists the options that a backend understands.
func (r *Runtime) OptionSchema(backend string) ([]OptionSchema, error) {
	end, err := r.hold()
	if err != nil {
		return nil, err
	}
	defer end()
	var m memory
	defer m.free()
	if err := checkText(backend, "the backend's name"); err != nil {
		return nil, err
	}
	name := m.text(backend)
	first := (**C.etude_option_schema)(m.alloc(1, unsafe.Sizeof(uintptr(0))))
	var count C.uint32_t
	err = call(func(e *C.etude_error) C.etude_status {
		return C.etude_runtime_option_schema(r.c, name, first, &count, e)
	})
	if err != nil {
		return nil, err
	}
	all := []OptionSchema{}
	for _, row := range unsafe.Slice(*first, count) {
		option := OptionSchema{
			Key: C.GoString(row.key), Help: C.GoString(row.help), Minimum: int64(row.minimum), Maximum: int64(row.maximum),
			Process: row.scopes&C.ETUDE_SCOPE_PROCESS != 0, Load: row.scopes&C.ETUDE_SCOPE_LOAD != 0,
			ReadOnly: row.flags&C.ETUDE_OPTION_READ_ONLY != 0, EffectNow: row.flags&C.ETUDE_OPTION_EFFECT_NOW != 0,
		}
		switch row := row; C.schema_type(&row) {
		case C.ETUDE_OPTION_BOOL:
			option.Default = row.default_value != 0
		case C.ETUDE_OPTION_INT:
			option.Default = int64(row.default_value)
		default:
			option.Default = C.GoString(row.default_string)
		}
		if row.choices != nil {
			for _, choice := range unsafe.Slice(row.choices, 1<<16) {
				if choice == nil {
					break
				}
				option.Choices = append(option.Choices, C.GoString(choice))
			}
		}
		all = append(all, option)
	}
	return all, nil
}

// Origin is where the value of an option comes from, weakest first.
type Origin int

// Origins of options.
const (
	OriginDefault Origin = C.ETUDE_ORIGIN_DEFAULT
	OriginProcess Origin = C.ETUDE_ORIGIN_PROCESS
	OriginProgram Origin = C.ETUDE_ORIGIN_PROGRAM
	OriginMethod  Origin = C.ETUDE_ORIGIN_METHOD
)

// Explanation is the value of an option as a method sees it, and where it comes from.
type Explanation struct {
	Value  any
	Origin Origin
	Layers map[Origin]any // those that say something
}

// ExplainOption tells the value of an option as this method sees it, and where it comes from.
func (m *Method) ExplainOption(backend, key string) (*Explanation, error) {
	end, err := m.take()
	if err != nil {
		return nil, err
	}
	defer end()
	if err := checkText(backend+key, "the backend's name or the key"); err != nil {
		return nil, err
	}
	var own memory
	defer own.free()
	told := (*C.etude_option_explanation)(own.alloc(1, C.sizeof_etude_option_explanation))
	told.struct_size = C.sizeof_etude_option_explanation
	name, text := own.text(backend), own.text(key)
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_method_explain_option(m.c, name, text, told, e) })
	if err != nil {
		return nil, err
	}
	kind := C.explanation_type(told)
	explanation := &Explanation{Origin: Origin(told.winner), Layers: map[Origin]any{}}
	for i := range told.values {
		if told.is_set>>i&1 != 0 {
			explanation.Layers[Origin(i)] = optionValue(kind, &told.values[i])
		}
	}
	explanation.Value = explanation.Layers[explanation.Origin]
	return explanation, nil
}
