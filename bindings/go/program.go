package etude

/*
#include "bridge.h"
*/
import "C"

import (
	goruntime "runtime"
	"sync"
	"unsafe"
)

// Program is a .pte file and its data files.
type Program struct {
	c        *C.etude_program
	runtime  *Runtime
	children children
	state    sync.Mutex // held by executions of methods that share state
}

// Open opens a file. It is mapped, so it must not be written over or shortened while the program is open: reading what is
// gone ends the process (SIGBUS). Replacing or deleting it is fine. OpenBytes reads from a copy.
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
		if option == nil {
			return nil, wrong(InvalidArgument, "", "an option of the program is nil")
		}
		option.program(&config)
	}
	rows, err := config.options.rows()
	if err != nil {
		return nil, err
	}
	defer rows.memory.free()
	letGo, err := r.hold()
	if err != nil {
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
			letGo()
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
	p.children.open = true
	goruntime.SetFinalizer(p, func(p *Program) { p.Close() })
	return p, nil
}

// Close ends the program, whose methods must be closed.
func (p *Program) Close() error {
	if p == nil {
		return nil
	}
	return p.children.close("program", "methods", func() {
		C.etude_program_free(p.c)
		p.runtime.children.remove()
	})
}

// Load loads a method.
func (p *Program) Load(name string, with ...MethodOption) (*Method, error) {
	config := methodConfig{constantLimit: 256 << 20}
	for _, option := range with {
		if option == nil {
			return nil, wrong(InvalidArgument, name, "an option of method '%s' is nil", name)
		}
		option.method(&config)
	}
	if err := checkText(name, "the method's name"); err != nil {
		return nil, err
	}
	rows, err := config.options.rows()
	if err != nil {
		return nil, err
	}
	defer rows.memory.free()
	letGo, err := p.hold()
	if err != nil {
		return nil, err
	}
	var m memory
	defer m.free()
	c := (*C.etude_method_config)(m.alloc(1, C.sizeof_etude_method_config))
	c.struct_size = C.sizeof_etude_method_config
	c.backend_options, c.backend_options_count = rows.first, rows.count
	c.constant_limit, c.memory_limit = C.uint64_t(config.constantLimit), C.uint64_t(config.memoryLimit)
	c.instruction_limit, c.work_limit = C.uint64_t(config.instructionLimit), C.uint64_t(config.workLimit)
	method := &Method{program: p, name: name}
	text := m.text(name)
	err = call(func(e *C.etude_error) C.etude_status { return C.etude_method_load(p.c, text, c, &method.c, e) })
	if err != nil {
		letGo()
		return nil, err
	}
	info := C.etude_memory_info{struct_size: C.sizeof_etude_memory_info}
	C.etude_method_memory(method.c, &info)
	method.shares = info.shared > 0
	goruntime.SetFinalizer(method, func(m *Method) { m.Close() })
	return method, nil
}
