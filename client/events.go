package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line of a stream.
const maxLine = 64 << 20

// readEvents reads server-sent events until the stream ends (nil), breaks, or take returns an error. Heard
// is called for each line, comments included.
func readEvents(stream io.Reader, heard func(), take func(name, id string, data []byte) error) error {
	lines := bufio.NewReaderSize(stream, 64<<10)
	var name, id string
	var data []byte
	for {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil // what is begun is not an event until its empty line
		}
		if err != nil {
			return &Error{Code: CodeNetwork, Title: "The connection was lost", Detail: innermost(err).Error(), Retry: After, Err: err}
		}
		heard()
		if len(line) == 0 {
			if len(data) > 0 {
				if err := take(name, id, data); err != nil {
					return err
				}
			}
			name, id, data = "", "", nil
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "id":
			id = string(value)
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
}

// readLine reads a line without its end, which is a line feed after an optional carriage return.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("a line of the stream has more than %d bytes", maxLine)
		}
		if err == nil {
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
