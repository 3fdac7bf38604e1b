package etude

/*
#include "bridge.h"
*/
import "C"

import goruntime "runtime"

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
	r.children.open = true
	goruntime.SetFinalizer(r, func(r *Runtime) { r.Close() })
	return r, nil
}

// Close ends the runtime, whose programs must be closed.
func (r *Runtime) Close() error {
	if r == nil {
		return nil
	}
	return r.children.close("runtime", "programs", func() { C.etude_host_runtime_free(r.c) })
}

// hold keeps the runtime open; the function returned lets go of it.
func (r *Runtime) hold() (func(), error) {
	if r == nil {
		return nil, wrong(InvalidState, "", "the runtime is nil")
	}
	if err := r.children.add("runtime"); err != nil {
		return nil, err
	}
	return r.children.remove, nil
}

// Backends are the names of those that are registered; none of a runtime that is closed.
func (r *Runtime) Backends() []string {
	names := []string{}
	end, err := r.hold()
	if err != nil {
		return names
	}
	defer end()
	for i := C.uint32_t(0); i < C.etude_runtime_backend_count(r.c); i++ {
		names = append(names, C.GoString(C.etude_runtime_backend_name(r.c, i)))
	}
	return names
}
