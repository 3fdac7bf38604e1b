package etude

// ProgramOption says how a program is opened.
type ProgramOption interface{ program(*programConfig) }

// MethodOption says how a method is loaded.
type MethodOption interface{ method(*methodConfig) }

type programConfig struct {
	dataFiles []string
	options   Options
}

type methodConfig struct {
	options                                                 Options
	constantLimit, memoryLimit, instructionLimit, workLimit uint64
}

type programOption func(*programConfig)

func (o programOption) program(c *programConfig) { o(c) }

type methodOption func(*methodConfig)

func (o methodOption) method(c *methodConfig) { o(c) }

// WithDataFiles adds .ptd files.
func WithDataFiles(paths ...string) ProgramOption {
	return programOption(func(c *programConfig) { c.dataFiles = append(c.dataFiles, paths...) })
}

// LoadOptions are options of backends for a program or a method.
type LoadOptions Options

func (o LoadOptions) program(c *programConfig) { c.options = c.options.with(o) }
func (o LoadOptions) method(c *methodConfig)   { c.options = c.options.with(o) }

// with is a copy of options with those of others, which count where both have a key.
func (options Options) with(others LoadOptions) Options {
	all := Options{}
	for _, from := range []Options{options, Options(others)} {
		for backend, keys := range from {
			if all[backend] == nil {
				all[backend] = map[string]any{}
			}
			for key, value := range keys {
				all[backend][key] = value
			}
		}
	}
	return all
}

// WithOptions gives options to one method or, of a program, to every method that is loaded; key by key, the method's count.
// Given twice, the later ones count, key by key.
func WithOptions(options Options) LoadOptions { return LoadOptions(options) }

// WithConstantLimit sets the most bytes for what is computed once, at load, as packed weights: 256 MiB unless set, 0 = none.
func WithConstantLimit(bytes uint64) MethodOption {
	return methodOption(func(c *methodConfig) { c.constantLimit = bytes })
}

// WithMemoryLimit sets the most bytes that the file may ask for: 1 GiB unless set.
func WithMemoryLimit(bytes uint64) MethodOption {
	return methodOption(func(c *methodConfig) { c.memoryLimit = bytes })
}

// WithInstructionLimit sets the most instructions of one execution: 10,000,000 unless set.
func WithInstructionLimit(count uint64) MethodOption {
	return methodOption(func(c *methodConfig) { c.instructionLimit = count })
}

// WithWorkLimit sets the most work of one execution, in bytes of tensors taken and steps of heavy loops: 2^41 unless set.
func WithWorkLimit(amount uint64) MethodOption {
	return methodOption(func(c *methodConfig) { c.workLimit = amount })
}
