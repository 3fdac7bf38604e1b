package etude

/*
#include "bridge.h"
*/
import "C"

// StateNames are the names of the state: the mutable buffers.
func (m *Method) StateNames() ([]string, error) {
	end, err := m.take()
	if err != nil {
		return nil, err
	}
	defer end()
	names := []string{}
	for i := C.uint32_t(0); i < C.etude_method_state_count(m.c); i++ {
		var name *C.char
		if err := call(func(e *C.etude_error) C.etude_status { return C.etude_method_state(m.c, i, &name, nil, e) }); err != nil {
			return nil, err
		}
		names = append(names, C.GoString(name))
	}
	return names, nil
}

// findState is the number of a mutable buffer; the method is taken.
func (m *Method) findState(name string) (index C.uint32_t, err error) {
	if err := checkText(name, "the state's name"); err != nil {
		return 0, err
	}
	var own memory
	defer own.free()
	text := own.text(name)
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_method_find_state(m.c, text, &index, e) })
	return index, err
}

// State is a copy of a mutable buffer. NotFound lists those that exist.
func (m *Method) State(name string) (*Tensor, error) {
	end, err := m.take()
	if err != nil {
		return nil, err
	}
	defer end()
	index, err := m.findState(name)
	if err != nil {
		return nil, err
	}
	var own memory
	defer own.free()
	tensor := (*C.etude_tensor)(own.alloc(1, C.sizeof_etude_tensor))
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_method_state(m.c, index, nil, tensor, e) })
	if err != nil {
		return nil, err
	}
	return copyTensor(tensor), nil
}

// SetState overwrites a mutable buffer with a tensor of as many bytes.
func (m *Method) SetState(name string, tensor *Tensor) error {
	end, err := m.take()
	if err != nil {
		return err
	}
	defer end()
	if tensor == nil {
		return wrong(InvalidArgument, name, "state '%s' can't be set to a nil *Tensor", name)
	}
	index, err := m.findState(name)
	if err != nil {
		return err
	}
	var own memory
	defer own.free()
	data, size := own.bytes(tensor.Bytes), C.size_t(len(tensor.Bytes))
	return call(func(e *C.etude_error) C.etude_status { return C.etude_method_write_state(m.c, index, data, size, e) })
}

// ResetState takes mutable buffers, all where none is named, back to what they held when the program was loaded.
func (m *Method) ResetState(names ...string) error {
	end, err := m.take()
	if err != nil {
		return err
	}
	defer end()
	all := []C.uint32_t{C.UINT32_MAX}
	for i, name := range names {
		index, err := m.findState(name)
		if err != nil {
			return err
		}
		all = append(all[:i], index)
	}
	for _, index := range all {
		index := index
		err := call(func(e *C.etude_error) C.etude_status { return C.etude_method_reset_state(m.c, index, e) })
		if err != nil {
			return err
		}
	}
	return nil
}
