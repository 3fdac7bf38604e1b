package etude

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Status is the kind of an Error; names and numbers are those of ExecuTorch's Error enumeration. It is an error itself,
// for errors.Is.
type Status int32

// Statuses of calls that failed.
const (
	Internal              Status = C.ETUDE_INTERNAL
	InvalidState          Status = C.ETUDE_INVALID_STATE
	NotSupported          Status = C.ETUDE_NOT_SUPPORTED
	NotImplemented        Status = C.ETUDE_NOT_IMPLEMENTED
	InvalidArgument       Status = C.ETUDE_INVALID_ARGUMENT
	InvalidType           Status = C.ETUDE_INVALID_TYPE
	OperatorMissing       Status = C.ETUDE_OPERATOR_MISSING
	AlreadyRegistered     Status = C.ETUDE_ALREADY_REGISTERED
	NotFound              Status = C.ETUDE_NOT_FOUND
	OutOfMemory           Status = C.ETUDE_OUT_OF_MEMORY
	AccessFailed          Status = C.ETUDE_ACCESS_FAILED
	InvalidProgram        Status = C.ETUDE_INVALID_PROGRAM
	InvalidExternalData   Status = C.ETUDE_INVALID_EXTERNAL_DATA
	OutOfResources        Status = C.ETUDE_OUT_OF_RESOURCES
	DelegateIncompatible  Status = C.ETUDE_DELEGATE_INCOMPATIBLE
	DelegateOutOfMemory   Status = C.ETUDE_DELEGATE_OUT_OF_MEMORY
	DelegateInvalidHandle Status = C.ETUDE_DELEGATE_INVALID_HANDLE
	Cancelled             Status = C.ETUDE_CANCELLED
)

// Error gives the name as ExecuTorch spells it: "InvalidArgument".
func (s Status) Error() string { return C.GoString(C.etude_status_name(C.etude_status(s))) }

// Error is what went wrong: one sentence with what, where, and what to do.
type Error struct {
	Status  Status
	Message string
	Subject string // the method, operator, backend or option key at fault; may be empty
	Offset  int64  // the byte of the file at fault, or -1
	Cause   error  // of a context that ended the execution: its error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the error of the context that ended an execution, if one did.
func (e *Error) Unwrap() error { return e.Cause }

// Is tells errors.Is whether e has a status.
func (e *Error) Is(target error) bool { return target == error(e.Status) }

func wrong(status Status, subject, format string, args ...any) error {
	return &Error{Status: status, Subject: subject, Message: fmt.Sprintf(format, args...), Offset: -1}
}

// call runs f with a report and turns what it wrote into an error.
func call(f func(*C.etude_error) C.etude_status) error {
	report := C.report_new()
	if report == nil {
		return wrong(OutOfMemory, "", "no memory for an error report")
	}
	defer C.free(unsafe.Pointer(report))
	status := f((*C.etude_error)(unsafe.Pointer(report)))
	if status == C.ETUDE_OK {
		return nil
	}
	offset := int64(-1)
	if uint64(report.error.offset) != uint64(C.ETUDE_NO_OFFSET) {
		offset = int64(report.error.offset)
	}
	return &Error{
		Status:  Status(status),
		Message: C.GoString(C.report_message(report)),
		Subject: C.GoString(&report.error.subject[0]),
		Offset:  offset,
	}
}

// checkText refuses what a C string can't hold.
func checkText(text, what string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return wrong(InvalidArgument, "", "%s %q has a NUL inside", what, text)
	}
	return nil
}
