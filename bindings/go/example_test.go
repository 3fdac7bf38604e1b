package etude_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"etude"
)

func Example() {
	runtime, err := etude.NewRuntime(2)
	if err != nil {
		panic(err)
	}
	defer runtime.Close()
	program, err := runtime.Open("../../tests/corpus/add.pte")
	if err != nil {
		panic(err)
	}
	defer program.Close()
	forward, err := program.Load("forward")
	if err != nil {
		panic(err)
	}
	defer forward.Close()
	x := etude.NewTensor([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	outputs, err := forward.Run(x, x)
	if err != nil {
		panic(err)
	}
	sum := outputs[0].(*etude.Tensor)
	elements, err := etude.Data[float32](sum)
	fmt.Println(sum, elements, err)
	// Output: float [2, 3] [2 4 6 8 10 12] <nil>
}

func ExampleMethod_RunContext() {
	runtime, _ := etude.NewRuntime(1)
	defer runtime.Close()
	program, _ := runtime.Open("../../tests/corpus/add.pte")
	defer program.Close()
	forward, _ := program.Load("forward")
	defer forward.Close()
	ctx, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	x := etude.NewTensor(make([]float32, 6), 2, 3)
	_, err := forward.RunContext(ctx, x, x)
	fmt.Println(errors.Is(err, etude.Cancelled), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

func ExampleProgram_Method() {
	runtime, _ := etude.NewRuntime(1)
	defer runtime.Close()
	program, _ := runtime.Open("../../tests/corpus/add.pte")
	defer program.Close()
	info, _ := program.Method("forward")
	for _, input := range info.Inputs {
		fmt.Println(input.Kind, input.Type, input.Sizes)
	}
	fmt.Println(info.Operators)
	// Output:
	// Tensor float [2 3]
	// Tensor float [2 3]
	// [aten::add.out]
}

func ExampleRuntime_SetOption() {
	runtime, _ := etude.NewRuntime(1)
	defer runtime.Close()
	err := runtime.SetOption("XnnpackBackend", "workspace_sharing_mode", 3)
	var wrong *etude.Error
	fmt.Println(errors.Is(err, etude.InvalidArgument), errors.As(err, &wrong))
	fmt.Println(wrong.Subject)
	// Output:
	// true true
	// workspace_sharing_mode
}
