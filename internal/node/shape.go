package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ShapeError says that a value of a JSON text has another kind than is wanted there.
type ShapeError struct {
	Field string // the members that lead to it, with dots between; "" is the whole text
	Is    string // its kind
	Want  string // the kind that is wanted
	Err   error
}

func (e *ShapeError) Error() string {
	what := "it"
	if e.Field != "" {
		what = fmt.Sprintf("'%s'", e.Field)
	}
	return fmt.Sprintf("%s is %s, and not %s", what, e.Is, e.Want)
}
func (e *ShapeError) Unwrap() error { return e.Err }

// Shape turns what package json says of a value of the wrong kind, in terms of Go, into *[ShapeError]; another error
// stays as it is.
func Shape(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	is, _, _ := strings.Cut(wrong.Value, " ")
	e := &ShapeError{Field: wrong.Field, Is: is, Want: "what is wanted there", Err: err}
	switch is {
	case "string":
		e.Is = "a text"
	case "number":
		e.Is = "a number"
		if _, value, ok := strings.Cut(wrong.Value, " "); ok {
			e.Is += " (" + value + ")"
		}
	case "bool":
		e.Is = "true or false"
	case "array":
		e.Is = "a list"
	case "object":
		e.Is = "an object"
	}
	for t := wrong.Type; t != nil; t = t.Elem() {
		switch t.Kind() {
		case reflect.Pointer:
			continue
		case reflect.String:
			e.Want = "a text"
		case reflect.Bool:
			e.Want = "true or false"
		case reflect.Slice, reflect.Array:
			e.Want = "a list"
		case reflect.Struct, reflect.Map:
			e.Want = "an object"
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			e.Want = "a whole number in range"
		case reflect.Float32, reflect.Float64:
			e.Want = "a number"
		}
		break
	}
	return e
}
