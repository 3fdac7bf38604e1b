// Package etude runs ExecuTorch programs (.pte files) with the C library etude, which pkg-config must find.
//
//	runtime, err := etude.NewRuntime(2)
//	defer runtime.Close()
//	program, err := runtime.Open("model.pte")
//	defer program.Close()
//	forward, err := program.Load("forward")
//	defer forward.Close()
//	outputs, err := forward.Run(etude.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 2, 3))
//	y, err := etude.Data[float32](outputs[0].(*etude.Tensor))
//
// Ownership: close methods before their program, and programs before their runtime; Close says so where the order is
// another. What was forgotten is closed when it is collected, methods first. Inputs are copied to memory of the method, outputs to memory of Go.
//
// Goroutines: everything may be used by several at once. A method runs one execution at a time, and so do methods of one
// program that share state.
//
// Errors are *Error; errors.Is(err, etude.NotFound) asks for a status. RunContext ends with its context, and its error then
// is the context's, too.
package etude

// #cgo pkg-config: etude
// #include "bridge.h"
import "C"

// Version of the library that is linked: "MAJOR.MINOR.PATCH".
func Version() string { return C.GoString(C.etude_version()) }

// Cores that this process may use.
func Cores() int { return int(C.etude_host_core_count()) }
