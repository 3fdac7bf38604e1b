package etude

import (
	"errors"
	"sync"
	"testing"
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
	method := must(program.Load("forward", nil))
	t.Cleanup(func() { method.Close() })
	return method
}

func TestOneMethodInManyGoroutines(t *testing.T) {
	runtime := must(NewRuntime(2))
	program := must(runtime.Open(corpus + "add.pte"))
	one := must(program.Load("forward", nil))
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
	method := must(program.Load("forward", nil))
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
	if _, err := program.Load("forward", nil); !errors.Is(err, InvalidState) {
		t.Error(err)
	}
	runtime.Close()
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
	} {
		if _, err := method.Run(NewTensor(x, 2, 3), c.input); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.input, err)
		}
	}
	if _, err := method.Run(NewTensor(x, 2, 3), NewTensor(x, 2, 3)); err != nil {
		t.Error(err)
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
