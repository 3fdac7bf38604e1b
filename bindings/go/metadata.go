package etude

/*
#include "bridge.h"
*/
import "C"

// MethodNames are the names of the methods; none of a program that is closed.
func (p *Program) MethodNames() []string {
	names := []string{}
	end, err := p.hold()
	if err != nil {
		return names
	}
	defer end()
	for i := C.uint32_t(0); i < C.etude_program_method_count(p.c); i++ {
		names = append(names, C.GoString(C.etude_program_method_name(p.c, i)))
	}
	return names
}

// ValueInfo is what a program says of an input or output.
type ValueInfo struct {
	Name     string // fully qualified, or empty
	Kind     string // "Tensor", "Int", "Double", "Bool", "String", "None", …
	Type     ScalarType
	Sizes    []int // of a tensor, at their largest
	DimOrder []byte
	Bytes    uint64 // of a tensor, at its largest
	Dynamic  bool   // sizes of a tensor may be smaller
	Value    any    // Int, Double, Bool, String: the value in the file
}

// MethodInfo is what a program says of a method, without loading it.
type MethodInfo struct {
	Name             string
	Inputs, Outputs  []ValueInfo
	Instructions     int
	Operators        []string // with overloads, each once
	MissingOperators []string // those, with dtypes, that this build has no kernel for
	Delegates        []string // the backend of each
	Buffers          []uint64 // bytes of each planned buffer
}

// Memory is bytes, region by region: etude_memory_info of docs/c-api.md says what each is.
type Memory struct {
	Structures, Planned, Shared, Unplanned, Loaded, Scratch, Delegates, Total, Peak, Constants uint64
}

func memoryOf(m *C.etude_memory_info) Memory {
	return Memory{
		Structures: uint64(m.structures), Planned: uint64(m.planned), Shared: uint64(m.shared), Unplanned: uint64(m.unplanned),
		Loaded: uint64(m.loaded), Scratch: uint64(m.scratch), Delegates: uint64(m.delegates), Total: uint64(m.total),
		Peak: uint64(m.peak), Constants: uint64(m.constants),
	}
}

func valueInfo(c *C.etude_value_info) ValueInfo {
	info := ValueInfo{
		Kind: C.GoString(C.etude_value_kind_name(c.tag)), Type: ScalarType(c.scalar_type), Bytes: uint64(c.nbytes),
		Dynamic: c.flags&C.ETUDE_TENSOR_DYNAMIC != 0,
	}
	if c.name != nil {
		info.Name = C.GoString(c.name)
	}
	for i := 0; i < int(c.rank); i++ {
		info.Sizes = append(info.Sizes, int(c.sizes[i]))
		info.DimOrder = append(info.DimOrder, byte(c.dim_order[i]))
	}
	switch c.tag {
	case C.ETUDE_VALUE_INT, C.ETUDE_VALUE_DOUBLE, C.ETUDE_VALUE_BOOL, C.ETUDE_VALUE_STRING:
		info.Value, _ = copyOut(&c.constant)
	}
	return info
}

func (p *Program) find(name string) (index C.uint32_t, err error) {
	if err := checkText(name, "the method's name"); err != nil {
		return 0, err
	}
	var m memory
	defer m.free()
	text := m.text(name)
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_program_find_method(p.c, text, &index, e) })
	return index, err
}

// hold keeps the program open; the function returned lets go of it.
func (p *Program) hold() (func(), error) {
	if p == nil {
		return nil, wrong(InvalidState, "", "the program is nil")
	}
	if err := p.children.add("program"); err != nil {
		return nil, err
	}
	return p.children.remove, nil
}

// Method tells what the program says of a method, which is not loaded for it. NotFound lists those that exist.
func (p *Program) Method(name string) (*MethodInfo, error) {
	end, err := p.hold()
	if err != nil {
		return nil, err
	}
	defer end()
	method, err := p.find(name)
	if err != nil {
		return nil, err
	}
	var m memory
	defer m.free()
	counts := C.etude_method_info{struct_size: C.sizeof_etude_method_info}
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_program_method_info(p.c, method, &counts, e) })
	info := &MethodInfo{Name: name, Instructions: int(counts.instruction_count)}
	value := (*C.etude_value_info)(m.alloc(1, C.sizeof_etude_value_info))
	value.struct_size = C.sizeof_etude_value_info
	for i := C.uint32_t(0); err == nil && i < counts.input_count; i++ {
		err = call(func(e *C.etude_error) C.etude_status { return C.etude_program_input_info(p.c, method, i, value, e) })
		info.Inputs = append(info.Inputs, valueInfo(value))
	}
	for i := C.uint32_t(0); err == nil && i < counts.output_count; i++ {
		err = call(func(e *C.etude_error) C.etude_status { return C.etude_program_output_info(p.c, method, i, value, e) })
		info.Outputs = append(info.Outputs, valueInfo(value))
	}
	const room = 512
	text := (*C.char)(m.alloc(room, 1))
	for i := C.uint32_t(0); err == nil && i < counts.operator_count; i++ {
		err = call(func(e *C.etude_error) C.etude_status {
			return C.etude_program_operator_name(p.c, method, i, text, room, e)
		})
		info.Operators = append(info.Operators, C.GoString(text))
	}
	for i := C.uint32_t(0); err == nil && C.etude_program_missing_operator(p.c, method, i, text, room, nil) == C.ETUDE_OK; i++ {
		info.MissingOperators = append(info.MissingOperators, C.GoString(text))
	}
	for i := C.uint32_t(0); err == nil && i < counts.delegate_count; i++ {
		var backend *C.char
		err = call(func(e *C.etude_error) C.etude_status {
			return C.etude_program_delegate_backend(p.c, method, i, &backend, e)
		})
		info.Delegates = append(info.Delegates, C.GoString(backend))
	}
	for i := C.uint32_t(0); err == nil && i < counts.buffer_count; i++ {
		var size C.uint64_t
		err = call(func(e *C.etude_error) C.etude_status { return C.etude_program_buffer_size(p.c, method, i, &size, e) })
		info.Buffers = append(info.Buffers, uint64(size))
	}
	if err != nil {
		return nil, err
	}
	return info, nil
}

// Memory is what loading and running a method would take, with inputs of the largest sizes.
func (p *Program) Memory(name string) (Memory, error) {
	end, err := p.hold()
	if err != nil {
		return Memory{}, err
	}
	defer end()
	method, err := p.find(name)
	if err != nil {
		return Memory{}, err
	}
	info := C.etude_memory_info{struct_size: C.sizeof_etude_memory_info}
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_program_method_memory(p.c, method, &info, e) })
	return memoryOf(&info), err
}
