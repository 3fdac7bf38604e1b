package etude

/*
#include "bridge.h"
*/
import "C"

import (
	"context"
	"fmt"
	"sync"
	"unsafe"
)

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
	if m == nil {
		return nil
	}
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
	if m == nil {
		return
	}
	m.closing.Lock()
	defer m.closing.Unlock()
	if m.c != nil {
		C.etude_method_cancel(m.c)
	}
}

// take begins the use of the method by one goroutine; the function returned ends it.
func (m *Method) take() (func(), error) {
	if m == nil {
		return nil, wrong(InvalidState, "", "the method is nil")
	}
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
	return m.RunContext(context.Background(), inputs...)
}

// RunContext is Run, which ends with Cancelled, and the context's own error, when ctx does.
func (m *Method) RunContext(ctx context.Context, inputs ...any) ([]any, error) {
	if ctx == nil {
		return nil, wrong(InvalidArgument, "", "the context is nil: give context.Background(), or use Run")
	}
	end, err := m.take()
	if err != nil {
		return nil, err
	}
	defer end()
	if err := m.setInputs(inputs); err != nil {
		return nil, err
	}
	return m.execute(ctx)
}

// Execute runs a method whose inputs are set, or that has none.
func (m *Method) Execute() ([]any, error) {
	end, err := m.take()
	if err != nil {
		return nil, err
	}
	defer end()
	return m.execute(context.Background())
}

func (m *Method) setInputs(inputs []any) error {
	var next memory
	values := unsafe.Slice((*C.etude_value)(next.alloc(len(inputs), C.sizeof_etude_value)), len(inputs)+1)
	for i, input := range inputs {
		if err := next.value(&values[i], i, input); err != nil {
			next.free()
			return err
		}
	}
	err := call(func(e *C.etude_error) C.etude_status {
		return C.etude_method_set_inputs(m.c, &values[0], C.uint32_t(len(inputs)), e)
	})
	if err != nil {
		next.free()
		return err
	}
	m.inputs.free() // of the inputs before
	m.inputs = next
	return nil
}

// watch lets executions end with ctx until the function returned is called.
func (m *Method) watch(ctx context.Context) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	var own memory
	flag := (*C.int32_t)(own.alloc(1, 4))
	C.method_watch(m.c, flag)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			C.flag_set(flag)
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-done
		C.method_watch(m.c, nil)
		own.free()
	}
}

func (m *Method) execute(ctx context.Context) ([]any, error) {
	if cause := ctx.Err(); cause != nil {
		return nil, &Error{Status: Cancelled, Message: "the context ended before method '" + m.name + "' ran", Subject: m.name, Offset: -1, Cause: cause}
	}
	end := m.watch(ctx)
	err := call(func(e *C.etude_error) C.etude_status { return C.etude_method_execute(m.c, e) })
	end()
	if wrong, is := err.(*Error); is {
		if wrong.Status == Cancelled {
			wrong.Cause = ctx.Err()
		}
		return nil, wrong
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

// ProfileRow is the time of an instruction or, at depth 1, of a node of what a backend runs for one.
type ProfileRow struct {
	Name                     string // operator, backend or node; empty for moves and jumps
	Instruction, Node, Depth int
	Nanoseconds              uint64
	Bytes                    uint64 // of the tensors that it got and gave
	Flops                    uint64 // 0 = not known
}

// Profile is Run, and where the time went.
func (m *Method) Profile(inputs ...any) ([]any, []ProfileRow, error) {
	end, err := m.take()
	if err != nil {
		return nil, nil, err
	}
	defer end()
	if err := m.setInputs(inputs); err != nil {
		return nil, nil, err
	}
	const most = 16384
	var own memory
	defer own.free()
	rows := unsafe.Slice((*C.etude_profile_row)(own.alloc(most, C.sizeof_etude_profile_row)), most)
	profile := (*C.etude_profile)(own.alloc(1, C.sizeof_etude_profile))
	C.etude_profile_start(profile, &rows[0], most, nil, 0)
	C.method_profile(m.c, profile)
	outputs, err := m.execute(context.Background())
	C.method_profile(m.c, nil)
	if err != nil {
		return nil, nil, err
	}
	all := []ProfileRow{}
	for _, row := range rows[:profile.row_count] {
		all = append(all, ProfileRow{
			Name: C.GoString(row.name), Instruction: int(row.instruction), Node: int(row.node), Depth: int(row.depth),
			Nanoseconds: uint64(row.total), Bytes: uint64(row.bytes), Flops: uint64(row.flops),
		})
	}
	return outputs, all, nil
}

// SetSeed starts the method's random numbers anew.
func (m *Method) SetSeed(seed uint64) error {
	end, err := m.take()
	if err != nil {
		return err
	}
	defer end()
	C.etude_method_set_seed(m.c, C.uint64_t(seed))
	return nil
}

// Memory is what the method takes of its memory now.
func (m *Method) Memory() (Memory, error) {
	end, err := m.take()
	if err != nil {
		return Memory{}, err
	}
	defer end()
	info := C.etude_memory_info{struct_size: C.sizeof_etude_memory_info}
	C.etude_method_memory(m.c, &info)
	return memoryOf(&info), nil
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
	if err := t.check(fmt.Sprintf("input %d", index)); err != nil {
		return err
	}
	rank := len(t.Sizes)
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
		return copyTensor(C.value_tensor(v)), nil
	default:
		return nil, wrong(NotSupported, "", "an output of kind %s", C.GoString(C.etude_value_kind_name(v.tag)))
	}
}

func copyTensor(c *C.etude_tensor) *Tensor {
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
	return t
}
