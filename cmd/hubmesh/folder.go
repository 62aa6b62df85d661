package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
)

// folder is a folder or file that was named on the command line, made absolute. An empty name is
// refused: it would be the folder that the command runs in, which nobody has named.
type folder string

var errNoName = errors.New("the name is empty; for the folder that you are in say '.'")

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *folder) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errNoName
	}
	*f = folder(kong.ExpandPath(string(text)))
	return nil
}

// check tells whether it is a folder that can be read.
func (f folder) check() error {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("'%s': no such folder", string(f))
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("'%s' is a file, not a folder", string(f))
	}
	dir, err := os.Open(string(f))
	if err != nil {
		return err
	}
	return dir.Close()
}
