package etude

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const corpus = "../../tests/corpus/"

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var x = []float32{1, -2, 3, 4, 0.5, 6}

// load gives a method that adds two tensors, and is closed after the test with all that it stands on.
func load(t *testing.T) *Method {
	runtime := must(NewRuntime(1))
	t.Cleanup(func() { runtime.Close() })
	program := must(runtime.Open(corpus + "add.pte"))
	t.Cleanup(func() { program.Close() })
	method := must(program.Load("forward"))
	t.Cleanup(func() { method.Close() })
	return method
}

func TestOneMethodInManyGoroutines(t *testing.T) {
	runtime := must(NewRuntime(2))
	program := must(runtime.Open(corpus + "add.pte"))
	one := must(program.Load("forward"))
	var all sync.WaitGroup
	for n := 0; n < 8; n++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			y := NewTensor([]float32{1, 1, 1, 1, 1, float32(n)}, 2, 3)
			for i := 0; i < 50; i++ {
				outputs, err := one.Run(NewTensor(x, 2, 3), y)
				if err != nil {
					t.Error(err)
					return
				}
				if got := must(Data[float32](outputs[0].(*Tensor))); got[5] != 6+float32(n) || got[1] != -1 {
					t.Errorf("%d: %v", n, got)
				}
			}
		}(n)
	}
	all.Wait()
	for _, close := range []func() error{one.Close, one.Close, program.Close, program.Close, runtime.Close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOrderOfClosing(t *testing.T) {
	runtime := must(NewRuntime(1))
	program := must(runtime.Open(corpus + "add.pte"))
	method := must(program.Load("forward"))
	if err := runtime.Close(); !errors.Is(err, InvalidState) {
		t.Error(err)
	}
	if err := program.Close(); !errors.Is(err, InvalidState) {
		t.Error(err)
	}
	method.Close()
	if _, err := method.Run(); !errors.Is(err, InvalidState) {
		t.Error(err)
	}
	method.Cancel()
	program.Close()
	if _, err := program.Load("forward"); !errors.Is(err, InvalidState) {
		t.Error(err)
	}
	runtime.Close()
	if err := runtime.SetOption("XnnpackBackend", "num_threads", 1); !errors.Is(err, InvalidState) {
		t.Error(err)
	}
	if len(runtime.Backends())+len(program.MethodNames()) != 0 {
		t.Error("names of what is closed")
	}
}

func TestInputsThatAreRefused(t *testing.T) {
	method := load(t)
	for _, c := range []struct {
		input any
		want  Status
	}{
		{NewTensor(x[:5], 2, 3), InvalidArgument},
		{NewTensor(x, 3, 2), NotSupported},
		{NewTensor(x, -2, -3), InvalidArgument},
		{NewTensor([]int64{1, 2, 3, 4, 5, 6}, 2, 3), InvalidArgument},
		{7, InvalidType},
		{"text", InvalidType},
		{struct{}{}, InvalidType},
		{(*Tensor)(nil), InvalidArgument},
		{NewTensor([]float32{}, 4294967298, 0), InvalidArgument},
		{&Tensor{Type: Float32, Sizes: []int{2, 3}, DimOrder: []byte{5, 9}, Bytes: make([]byte, 24)}, InvalidArgument},
		{&Tensor{Type: Float32, Sizes: []int{2, 3}, DimOrder: []byte{0, 0}, Bytes: make([]byte, 24)}, InvalidArgument},
	} {
		if _, err := method.Run(NewTensor(x, 2, 3), c.input); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.input, err)
		}
	}
	if _, err := method.Run(NewTensor(x, 2, 3), NewTensor(x, 2, 3)); err != nil {
		t.Error(err)
	}
}

func TestDataOfTensorsThatDoNotFit(t *testing.T) {
	for _, tensor := range []*Tensor{
		nil,
		{Type: Int64, Sizes: []int{1}, Bytes: make([]byte, 15)},
		{Type: Int64, Sizes: []int{1}, Bytes: make([]byte, 16)},
		{Type: Int64, Sizes: []int{1}},
		{Type: Int64, Sizes: []int{-1, -1}, Bytes: make([]byte, 8)},
		{Type: Int64, Sizes: []int{1, 1}, DimOrder: []byte{5, 9}, Bytes: make([]byte, 8)},
		{Type: Int64, Sizes: []int{1, 1}, DimOrder: []byte{1, 1}, Bytes: make([]byte, 8)},
		{Type: Int64, Sizes: []int{1, 1}, DimOrder: []byte{0}, Bytes: make([]byte, 8)},
	} {
		if _, err := Data[int64](tensor); !errors.Is(err, InvalidArgument) {
			t.Errorf("%v: %v", tensor, err)
		}
	}
}

func TestZeroAndNilAreRefused(t *testing.T) {
	runtime, program := open(t, "corpus/add.pte")
	for _, r := range []*Runtime{nil, {}} {
		if _, err := r.Open(corpus + "add.pte"); !errors.Is(err, InvalidState) {
			t.Error(err)
		}
		if _, err := r.Option("XnnpackBackend", "num_threads"); !errors.Is(err, InvalidState) {
			t.Error(err)
		}
		if len(r.Backends()) != 0 || r.Close() != nil {
			t.Error(r)
		}
	}
	for _, p := range []*Program{nil, {}} {
		if _, err := p.Load("forward"); !errors.Is(err, InvalidState) {
			t.Error(err)
		}
		if _, err := p.Method("forward"); !errors.Is(err, InvalidState) {
			t.Error(err)
		}
		if len(p.MethodNames()) != 0 || p.Close() != nil {
			t.Error(p)
		}
	}
	for _, m := range []*Method{nil, {}} {
		m.Cancel()
		if _, err := m.Run(); !errors.Is(err, InvalidState) || m.Close() != nil {
			t.Error(err)
		}
	}
	if _, err := runtime.Open(corpus+"add.pte", nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if _, err := program.Load("forward", nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	var ctx context.Context
	if _, err := load(t).RunContext(ctx); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}

func TestOptionsGivenTwiceAreMerged(t *testing.T) {
	_, program := open(t, "data/xnnpack/int8_clamps.pte")
	first := Options{"XnnpackBackend": {"workspace_sharing_mode": 1, "num_threads": 1}}
	method := must(program.Load(program.MethodNames()[0], WithOptions(first), WithOptions(Options{"XnnpackBackend": {"workspace_sharing_mode": 0}})))
	defer method.Close()
	for key, want := range map[string]int64{"workspace_sharing_mode": 0, "num_threads": 1} {
		if got := must(method.ExplainOption("XnnpackBackend", key)); got.Origin != OriginMethod || got.Value != want {
			t.Errorf("%s: %+v", key, got)
		}
	}
	if first["XnnpackBackend"]["workspace_sharing_mode"] != 1 {
		t.Error(first)
	}
}

func TestChannelsLastData(t *testing.T) {
	// sizes 1, 2, 2, 2 with the channels innermost: as numpy's arange(8).reshape(1, 2, 2, 2).transpose(0, 3, 1, 2)
	tensor := NewTensor([]int32{0, 1, 2, 3, 4, 5, 6, 7}, 1, 2, 2, 2)
	tensor.DimOrder = []byte{0, 2, 3, 1}
	got := must(Data[int32](tensor))
	for i, want := range []int32{0, 2, 4, 6, 1, 3, 5, 7} {
		if got[i] != want {
			t.Fatal(got)
		}
	}
}

func TestCancel(t *testing.T) {
	method := load(t)
	method.Cancel()
	if _, err := method.Run(NewTensor(x, 2, 3), NewTensor(x, 2, 3)); !errors.Is(err, Cancelled) {
		t.Error(err)
	}
	if _, err := method.Run(NewTensor(x, 2, 3), NewTensor(x, 2, 3)); err != nil {
		t.Error(err)
	}
}

// open gives a program of the tests, which is closed after the test with its runtime.
func open(t *testing.T, name string) (*Runtime, *Program) {
	runtime := must(NewRuntime(1))
	t.Cleanup(func() { runtime.Close() })
	program := must(runtime.Open("../../tests/" + name))
	t.Cleanup(func() { program.Close() })
	return runtime, program
}

func TestContextsEndExecutions(t *testing.T) {
	// a decoder that is asked to do much in one call
	_, program := open(t, "corpus/vit_tiny.pte")
	method := must(program.Load("forward"))
	defer method.Close()
	sizes := must(program.Method("forward")).Inputs[0].Sizes
	count := 1
	for _, size := range sizes {
		count *= size
	}
	image := NewTensor(make([]float32, count), sizes...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := method.RunContext(ctx, image); !errors.Is(err, Cancelled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	var err error
	for err == nil {
		_, err = method.RunContext(ctx, image)
	}
	if !errors.Is(err, Cancelled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for i := 0; i < 3; i++ { // nothing is left behind, neither by that nor by a context that ends afterwards
		if _, err := method.RunContext(ctx, image); err != nil {
			t.Error(err)
		}
	}
	cancel()
	outputs, rows, err := method.Profile(image)
	if err != nil || len(outputs) != 1 || len(rows) < 10 || !strings.HasPrefix(rows[0].Name, "aten::") {
		t.Error(err, rows)
	}
	limited := must(program.Load("forward", WithWorkLimit(10)))
	defer limited.Close()
	if _, err := limited.Run(image); !errors.Is(err, InvalidProgram) || !strings.Contains(err.Error(), "work_limit") {
		t.Error(err)
	}
}

func TestState(t *testing.T) {
	_, program := open(t, "corpus/shared_state.pte")
	put, get := must(program.Load("put")), must(program.Load("get"))
	defer put.Close()
	defer get.Close()
	name := must(put.StateNames())[0]
	before := must(get.State(name))
	if _, err := put.Run(NewTensor([]float32{1, 2, 3}, 1, 3), NewTensor([]int64{2}, 1)); err != nil {
		t.Fatal(err)
	}
	after := must(get.State(name))
	if bytes.Equal(before.Bytes, after.Bytes) || !reflect.DeepEqual(before.Sizes, after.Sizes) {
		t.Error(before, after)
	}
	if err := get.SetState(name, before); err != nil || !bytes.Equal(must(put.State(name)).Bytes, before.Bytes) {
		t.Error(err)
	}
	if err := put.SetState(name, after); err != nil {
		t.Error(err)
	}
	if err := get.ResetState(name); err != nil || !bytes.Equal(must(put.State(name)).Bytes, before.Bytes) {
		t.Error(err)
	}
	if _, err := get.State("none"); !errors.Is(err, NotFound) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
	if err := get.SetState(name, nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if err := get.SetState(name, NewTensor([]float32{1}, 1)); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}

func TestMetadata(t *testing.T) {
	_, program := open(t, "corpus/add.pte")
	info := must(program.Method("forward"))
	want := ValueInfo{Kind: "Tensor", Type: Float32, Sizes: []int{2, 3}, DimOrder: []byte{0, 1}, Bytes: 24}
	if len(info.Inputs) != 2 || !reflect.DeepEqual(info.Inputs[1], want) || info.Instructions != 1 {
		t.Errorf("%+v", info)
	}
	if !reflect.DeepEqual(info.Operators, []string{"aten::add.out"}) || len(info.MissingOperators)+len(info.Delegates) != 0 {
		t.Errorf("%+v", info)
	}
	if must(program.Memory("forward")).Planned != info.Buffers[0] {
		t.Errorf("%+v", info)
	}
	_, program = open(t, "llm/l_runner.pte")
	if context := must(program.Method("get_max_context_len")).Outputs[0]; context.Kind != "Int" || context.Value.(int64) <= 0 {
		t.Errorf("%+v", context)
	}
}

func TestOptionsAreListed(t *testing.T) {
	runtime, program := open(t, "data/xnnpack/int8_clamps.pte")
	found := false
	for _, option := range must(runtime.OptionSchema("XnnpackBackend")) {
		if option.Key == "workspace_sharing_mode" {
			found = true
			want := []string{"disabled", "per_model", "global"}
			if option.Minimum != 0 || option.Maximum != 2 || !reflect.DeepEqual(option.Choices, want) || option.Help == "" {
				t.Errorf("%+v", option)
			}
		}
		if !option.ReadOnly && must(runtime.Option("XnnpackBackend", option.Key)) != option.Default {
			t.Errorf("%+v", option)
		}
	}
	if !found {
		t.Error("no workspace_sharing_mode")
	}
	if err := runtime.SetOption("XnnpackBackend", "workspace_sharing_mode", 0); err != nil {
		t.Error(err)
	}
	method := must(program.Load(program.MethodNames()[0], WithOptions(Options{"XnnpackBackend": {"workspace_sharing_mode": 1}})))
	defer method.Close()
	got := must(method.ExplainOption("XnnpackBackend", "workspace_sharing_mode"))
	layers := map[Origin]any{OriginDefault: int64(2), OriginProcess: int64(0), OriginMethod: int64(1)}
	if got.Value != int64(1) || got.Origin != OriginMethod || !reflect.DeepEqual(got.Layers, layers) {
		t.Errorf("%+v", got)
	}
	if err := runtime.SetOption("XnnpackBackend", "a\x00b", 1); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if err := runtime.SetOption("XnnpackBackend", "workspace_sharing_mode", 1.5); !errors.Is(err, InvalidType) {
		t.Error(err)
	}
}

func TestWhatIsForgottenIsClosed(t *testing.T) {
	runtime := must(NewRuntime(1))
	func() {
		program := must(runtime.Open(corpus + "add.pte"))
		method := must(program.Load("forward"))
		must(method.Run(NewTensor(x, 2, 3), NewTensor(x, 2, 3)))
	}()
	for end := time.Now().Add(10 * time.Second); runtime.Close() != nil; { // the program first, and its method before
		if time.Now().After(end) {
			t.Fatal("they are not closed")
		}
		goruntime.GC()
		time.Sleep(time.Millisecond)
	}
}
