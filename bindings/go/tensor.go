package etude

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// ScalarType is the type of a tensor's elements; the codes are those of ExecuTorch's (and PyTorch's) ScalarType.
type ScalarType int8

// Element types.
const (
	Uint8    ScalarType = 0
	Int8     ScalarType = 1
	Int16    ScalarType = 2
	Int32    ScalarType = 3
	Int64    ScalarType = 4
	Float16  ScalarType = 5
	Float32  ScalarType = 6
	Float64  ScalarType = 7
	Bool     ScalarType = 11
	BFloat16 ScalarType = 15
	Uint16   ScalarType = 27
	Uint32   ScalarType = 28
	Uint64   ScalarType = 29
)

// String gives ExecuTorch's name: "float", "long", …
func (t ScalarType) String() string { return C.GoString(C.etude_scalar_name(C.int32_t(t))) }

// Size is the number of bytes of an element; 0 for a code that is none.
func (t ScalarType) Size() int { return int(C.etude_scalar_size(C.int32_t(t))) }

// Element is a type of Go that is an element of tensors.
type Element interface {
	uint8 | int8 | int16 | int32 | int64 | uint16 | uint32 | uint64 | float32 | float64 | bool
}

func typeOf[T Element]() ScalarType {
	var zero T
	switch any(zero).(type) {
	case uint8:
		return Uint8
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	default:
		return Bool
	}
}

// Tensor has its elements as bytes, so that every type has a place.
type Tensor struct {
	Type     ScalarType
	Sizes    []int
	DimOrder []byte // dimensions as they lie in memory, outermost first; empty = row-major
	Bytes    []byte
}

// NewTensor is a tensor with a copy of elements, in row-major order. Run refuses it where their number is not that of
// the sizes.
func NewTensor[T Element](elements []T, sizes ...int) *Tensor {
	t := &Tensor{Type: typeOf[T](), Sizes: sizes}
	if len(elements) > 0 {
		size := len(elements) * int(unsafe.Sizeof(elements[0]))
		t.Bytes = append(t.Bytes, unsafe.Slice((*byte)(unsafe.Pointer(&elements[0])), size)...)
	}
	return t
}

// check says what is wrong with a tensor, which is called what.
func (t *Tensor) check(what string) error {
	if t == nil {
		return wrong(InvalidArgument, "", "%s is a nil *Tensor", what)
	}
	rank := len(t.Sizes)
	if rank > C.ETUDE_MAX_RANK {
		return wrong(NotSupported, "", "%s: a tensor has at most %d dimensions", what, C.ETUDE_MAX_RANK)
	}
	if len(t.DimOrder) != 0 {
		var named uint32
		for _, dim := range t.DimOrder {
			named |= 1 << dim
		}
		if len(t.DimOrder) != rank || named != 1<<rank-1 {
			return wrong(InvalidArgument, "", "%s: the dim order %v is invalid: it does not name each dimension once", what, t.DimOrder)
		}
	}
	want := int64(t.Type.Size())
	if want == 0 {
		return wrong(InvalidArgument, "", "%s: %d is no type of elements", what, t.Type)
	}
	for _, size := range t.Sizes {
		if size < 0 || size > math.MaxInt32 || (size > 0 && want > (1<<40)/int64(size)) {
			return wrong(InvalidArgument, "", "%s: a tensor can't have the sizes %s", what, t.sizes())
		}
		want *= int64(size)
	}
	if want != int64(len(t.Bytes)) {
		return wrong(InvalidArgument, "", "%s: %d bytes of elements do not fill a tensor of sizes %s of %v", what, len(t.Bytes), t.sizes(), t.Type)
	}
	return nil
}

// Data is a copy of the elements, in row-major order, whatever the dim order. InvalidType where they are none of T;
// InvalidArgument where sizes, type, dim order and bytes do not fit each other.
func Data[T Element](t *Tensor) ([]T, error) {
	if err := t.check("the tensor"); err != nil {
		return nil, err
	}
	if t.Type != typeOf[T]() {
		return nil, wrong(InvalidType, "", "the tensor holds %v, not %v", t.Type, typeOf[T]())
	}
	var zero T
	stored := make([]T, len(t.Bytes)/int(unsafe.Sizeof(zero)))
	if len(stored) == 0 {
		return stored, nil
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&stored[0])), len(t.Bytes)), t.Bytes)
	strides := t.strides()
	if strides == nil {
		return stored, nil
	}
	elements := make([]T, 0, len(stored))
	at := make([]int, len(t.Sizes))
	for range stored {
		place := 0
		for k, i := range at {
			place += i * strides[k]
		}
		elements = append(elements, stored[place])
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < t.Sizes[k] {
				break
			}
			at[k] = 0
		}
	}
	return elements, nil
}

// strides in elements; nil for row-major.
func (t *Tensor) strides() []int {
	ordered := true
	for i, dim := range t.DimOrder {
		ordered = ordered && int(dim) == i
	}
	if ordered {
		return nil
	}
	strides := make([]int, len(t.Sizes))
	stride := 1
	for i := len(t.DimOrder) - 1; i >= 0; i-- {
		strides[t.DimOrder[i]] = stride
		stride *= t.Sizes[t.DimOrder[i]]
	}
	return strides
}

func (t *Tensor) String() string { return fmt.Sprintf("%v %s", t.Type, t.sizes()) }

// sizes as all languages write them: "[2, 3]".
func (t *Tensor) sizes() string { return strings.ReplaceAll(fmt.Sprint(t.Sizes), " ", ", ") }
