// Command generate runs a language model: token ids in, token ids out, each as soon as it is chosen. For programs of the
// llama exporter with caches.
//
//	echo 43 72 270 | go run ./examples/generate -n 8 model.pte
//
// Each line of the input is a turn, which goes on where the last one ended.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"etude"
)

type decoder struct {
	runtime  *etude.Runtime
	program  *etude.Program
	forward  *etude.Method
	bound    int   // most tokens of one call
	window   int64 // positions that the caches hold
	ends     map[int64]bool
	position int64
}

func (d *decoder) Close() {
	for _, part := range []interface{ Close() error }{d.forward, d.program, d.runtime} {
		part.Close()
	}
}

// constants are what a method without inputs returns.
func (d *decoder) constants(method string) ([]int64, error) {
	info, err := d.program.Method(method)
	if err != nil {
		return nil, err
	}
	all := []int64{}
	for _, output := range info.Outputs {
		if number, is := output.Value.(int64); is {
			all = append(all, number)
		}
	}
	return all, nil
}

func open(path string) (d *decoder, err error) {
	d = &decoder{ends: map[int64]bool{}}
	if d.runtime, err = etude.NewRuntime(1); err != nil {
		return nil, err
	}
	if d.program, err = d.runtime.Open(path); err != nil {
		return nil, err
	}
	info, err := d.program.Method("forward")
	if err != nil {
		return nil, err
	}
	sizes := info.Inputs[0].Sizes
	d.bound = sizes[len(sizes)-1]
	context, err := d.constants("get_max_context_len")
	if err != nil {
		return nil, err
	}
	d.window = context[0]
	ends, err := d.constants("get_eos_ids")
	if err != nil {
		return nil, err
	}
	for _, end := range ends {
		d.ends[end] = true
	}
	d.forward, err = d.program.Load("forward")
	return d, err
}

// generate reads a prompt, then sends up to most tokens, until one ends the text or ctx does.
func (d *decoder) generate(ctx context.Context, prompt []int64, most int, onToken func(int64)) error {
	if len(prompt) == 0 || int64(len(prompt)) > d.window-d.position {
		return errors.New("the prompt is empty, or longer than what is left of the window")
	}
	token, err := d.feed(ctx, prompt)
	for i := 1; err == nil; i++ {
		onToken(token)
		if i == most || d.position == d.window || d.ends[token] {
			return nil
		}
		token, err = d.feed(ctx, []int64{token})
	}
	return err
}

// feed reads tokens, as many a call as the program takes, and tells the likeliest to follow.
func (d *decoder) feed(ctx context.Context, tokens []int64) (best int64, err error) {
	for len(tokens) > 0 {
		chunk := tokens
		if len(chunk) > d.bound {
			chunk = tokens[:d.bound]
		}
		tokens = tokens[len(chunk):]
		outputs, err := d.forward.RunContext(ctx, etude.NewTensor(chunk, 1, len(chunk)), etude.NewTensor([]int64{d.position}, 1))
		if err != nil {
			return 0, err
		}
		logits := outputs[0].(*etude.Tensor)
		all, err := etude.Data[float32](logits)
		if err != nil {
			return 0, err
		}
		last := all[len(all)-logits.Sizes[len(logits.Sizes)-1]:]
		best = 0
		for i := range last {
			if last[i] > last[best] {
				best = int64(i)
			}
		}
		d.position += int64(len(chunk))
	}
	return best, nil
}

func run() error {
	most := flag.Int("n", 20, "most tokens of a turn")
	flag.Parse()
	d, err := open(flag.Arg(0))
	if err != nil {
		return err
	}
	defer d.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // Ctrl-C ends the execution that goes on
	defer stop()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		prompt := []int64{}
		for _, word := range strings.Fields(lines.Text()) {
			id, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return err
			}
			prompt = append(prompt, id)
		}
		if err := d.generate(ctx, prompt, *most, func(token int64) { fmt.Print(token, " ") }); err != nil {
			return err
		}
		fmt.Println()
	}
	return lines.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
