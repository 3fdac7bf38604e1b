// Command runcase runs the cases of etude's corpus: tests/languages/languages.py says what is expected of a runner.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"etude"
)

// reader reads the format of examples/run_arena.c.
type reader struct {
	bytes []byte
	at    int
}

func (r *reader) skip(size int) []byte {
	r.at += size
	return r.bytes[r.at-size : r.at]
}
func (r *reader) u32() int     { return int(binary.LittleEndian.Uint32(r.skip(4))) }
func (r *reader) i64() int64   { return int64(binary.LittleEndian.Uint64(r.skip(8))) }
func (r *reader) text() string { return string(r.skip(r.u32())) }

func (r *reader) value() any {
	switch kind := r.u32(); kind {
	case 0:
		return nil
	case 1:
		return r.tensor()
	case 2:
		return r.text()
	case 3:
		return math.Float64frombits(uint64(r.i64()))
	case 4:
		return r.i64()
	case 5:
		return r.i64() != 0
	default:
		panic(fmt.Sprintf("a value of unknown kind %d", kind))
	}
}

func (r *reader) tensor() *etude.Tensor {
	t := &etude.Tensor{Type: etude.ScalarType(r.u32())}
	rank := r.u32()
	for i := 0; i < rank; i++ {
		t.Sizes = append(t.Sizes, r.u32())
	}
	for i := 0; i < rank; i++ {
		t.DimOrder = append(t.DimOrder, byte(r.u32()))
	}
	size := r.u32()
	r.at = (r.at + 15) / 16 * 16
	t.Bytes = r.skip(size)
	return t
}

type writer struct{ bytes []byte }

func (w *writer) u32(n int) { w.bytes = append(w.bytes, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }
func (w *writer) i64(n uint64) {
	w.u32(int(uint32(n)))
	w.u32(int(uint32(n >> 32)))
}

func (w *writer) value(value any) {
	switch v := value.(type) {
	case nil:
		w.u32(0)
	case *etude.Tensor:
		w.u32(1)
		w.u32(int(v.Type))
		w.u32(len(v.Sizes))
		for _, size := range v.Sizes {
			w.u32(size)
		}
		for _, dim := range v.DimOrder {
			w.u32(int(dim))
		}
		w.u32(len(v.Bytes))
		for len(w.bytes)%16 != 0 {
			w.bytes = append(w.bytes, 0)
		}
		w.bytes = append(w.bytes, v.Bytes...)
	case string:
		w.u32(2)
		w.u32(len(v))
		w.bytes = append(w.bytes, v...)
	case float64:
		w.u32(3)
		w.i64(math.Float64bits(v))
	case int64:
		w.u32(4)
		w.i64(uint64(v))
	case bool:
		w.u32(5)
		if v {
			w.i64(1)
		} else {
			w.i64(0)
		}
	}
}

func run(model, calls, results string, dataFiles []string) error {
	runtime, err := etude.NewRuntime(2)
	if err != nil {
		return err
	}
	defer runtime.Close()
	program, err := runtime.Open(model, etude.WithDataFiles(dataFiles...))
	if err != nil {
		return err
	}
	defer program.Close()
	bytes, err := os.ReadFile(calls)
	if err != nil {
		return err
	}
	in, out, methods := reader{bytes: bytes}, writer{}, map[string]*etude.Method{}
	for left := in.u32(); left > 0; left-- {
		name := in.text()
		if methods[name] == nil {
			if methods[name], err = program.Load(name); err != nil {
				return err
			}
			defer methods[name].Close()
		}
		inputs := make([]any, in.u32())
		for i := range inputs {
			inputs[i] = in.value()
		}
		outputs, err := methods[name].Run(inputs...)
		if err != nil {
			return err
		}
		out.u32(len(outputs))
		for _, output := range outputs {
			out.value(output)
		}
	}
	return os.WriteFile(results, out.bytes, 0o644)
}

func attempt(what string, err error) {
	var e *etude.Error
	switch {
	case err == nil:
		fmt.Printf("%s: ok\n", what)
	case errors.As(err, &e):
		fmt.Printf("%s: %v '%s' %s\n", what, e.Status, e.Subject, e.Message)
	default:
		fmt.Printf("%s: %v\n", what, err)
	}
}

func reportErrors(model string) error {
	const xnn, mode = "XnnpackBackend", "workspace_sharing_mode"
	runtime, err := etude.NewRuntime(1)
	if err != nil {
		return err
	}
	defer runtime.Close()
	get := func() {
		value, err := runtime.Option(xnn, mode)
		if err != nil {
			value = err
		}
		fmt.Printf("get: %v\n", value)
	}
	attempt("set", runtime.SetOption(xnn, mode, 1))
	get()
	attempt("set out of range", runtime.SetOption(xnn, mode, 3))
	attempt("set of wrong type", runtime.SetOption(xnn, mode, "one"))
	attempt("set unknown key", runtime.SetOption(xnn, "workspace_mode", 1))
	attempt("set unknown backend", runtime.SetOption("XnnBackend", mode, 1))
	attempt("set with one unknown", runtime.SetOptions(etude.Options{xnn: {mode: 2, "none": true}}))
	attempt("set long key", runtime.SetOption(xnn, strings.Repeat("k", 64), 1))
	attempt("set empty key", runtime.SetOption(xnn, "", 1))
	_, err = runtime.Option(xnn, "workspace_mode")
	attempt("get unknown key", err)
	attempt("reset unknown key", runtime.ResetOptions(xnn, "workspace_mode"))
	_, err = runtime.OptionSchema("XnnBackend")
	attempt("schema of unknown backend", err)
	get()
	attempt("reset", runtime.ResetOptions(xnn, ""))
	get()
	program, err := runtime.Open(model)
	if err != nil {
		return err
	}
	defer program.Close()
	load := func(what, name string, with ...etude.MethodOption) {
		method, err := program.Load(name, with...)
		attempt(what, err)
		if err == nil {
			method.Close()
		}
	}
	load("load", "forward", etude.WithOptions(etude.Options{xnn: {mode: 0}}))
	load("load out of range", "forward", etude.WithOptions(etude.Options{xnn: {mode: 3}}))
	load("load unused option", "forward", etude.WithOptions(etude.Options{"NullBackend": {"key": 1}}))
	load("load unknown method", "backward")
	load("load within 100 bytes", "forward", etude.WithConstantLimit(0), etude.WithMemoryLimit(100))
	_, err = program.Method("backward")
	attempt("describe unknown method", err)
	method, err := program.Load("forward")
	if err != nil {
		return err
	}
	defer method.Close()
	run := func(what string, inputs ...any) {
		_, err := method.Run(inputs...)
		attempt(what, err)
	}
	_, err = method.Execute()
	attempt("execute without inputs", err)
	run("too few inputs")
	_, err = method.ExplainOption(xnn, "workspace_mode")
	attempt("explain unknown key", err)
	attempt("reset unknown state", method.ResetState("cache"))
	run("input of wrong type", 1)
	run("input of wrong dtype", etude.NewTensor(make([]int64, 6), 2, 3))
	open := func(what string, open func() (*etude.Program, error)) {
		program, err := open()
		if err == nil {
			var method *etude.Method
			if method, err = program.Load("forward"); err == nil {
				method.Close()
			}
			program.Close()
		}
		attempt(what, err)
	}
	open("no such file", func() (*etude.Program, error) { return runtime.Open(model + ".missing") })
	open("no such data file", func() (*etude.Program, error) { return runtime.Open(model, etude.WithDataFiles(model+".ptd")) })
	bytes, err := os.ReadFile(model)
	if err != nil {
		return err
	}
	open("copied", func() (*etude.Program, error) { return runtime.OpenBytes(bytes) })
	open("cut short", func() (*etude.Program, error) { return runtime.OpenBytes(bytes[:len(bytes)/2]) })
	open("no program", func() (*etude.Program, error) { return runtime.OpenBytes([]byte("not a program")) })
	return nil
}

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 2 && args[0] == "--errors":
		err = reportErrors(args[1])
	case len(args) >= 3:
		err = run(args[0], args[1], args[2], args[3:])
	default:
		err = errors.New("usage: runcase MODEL CALLS OUT [DATA.ptd...] | runcase --errors MODEL")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
