package etude

/*
#include "bridge.h"
*/
import "C"

import (
	"sync"
	"unsafe"
)

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

func (m *memory) bytes(bytes []byte) unsafe.Pointer {
	block := m.alloc(len(bytes), 1)
	copy(unsafe.Slice((*byte)(block), len(bytes)), bytes)
	return block
}

// children counts what was made from something that must end after it.
type children struct {
	mutex sync.Mutex
	count int
	open  bool // not so in a zero value
}

func (c *children) add(what string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.open {
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
	if c.open {
		c.open = false
		end()
	}
	return nil
}
