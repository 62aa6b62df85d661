package transport

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden file anew; then raise Version")

func sampleHello() hello {
	return hello{version: 1, epoch: 0x0102030405060708, generation: 3, target: 0xa1a2a3a4a5a6a7a8, maxBody: 4 << 20, cluster: "production", name: "silo-1", addr: "10.0.0.1:7946"}
}

func sampleWelcome() welcome {
	return welcome{version: 1, verdict: staleGeneration, detail: 4, epoch: 0xa1a2a3a4a5a6a7a8, maxBody: 4 << 20, cluster: "production", name: "silo-2"}
}

// decision 4: a golden file per wire version
func TestTheBytesOfWireVersionOneAreThoseOfTheGoldenFile(t *testing.T) {
	request := frame{id: 0x0000000100000002, typ: frameRequest, class: Read, kind: 9, body: []byte("a request")}
	answer := frame{id: 0x0000000100000002, typ: frameAnswer, body: []byte("an answer")}
	failed := tooLargeFrame(7, 5<<20, 4<<20)
	whole := func(f frame) []byte { return append(f.appendHeader(nil), f.body...) }
	var text strings.Builder
	for _, line := range []struct {
		name  string
		bytes []byte
	}{
		{"hello", sampleHello().append(nil)}, {"welcome", sampleWelcome().append(nil)},
		{"request", whole(request)}, {"answer", whole(answer)}, {"failed", whole(failed)},
	} {
		fmt.Fprintf(&text, "%s %s\n", line.name, hex.EncodeToString(line.bytes))
	}
	file := fmt.Sprintf("testdata/wire-v%d.golden", Version)
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Fatalf("the wire has changed: raise Version, and write a new golden file with -update (-want +got):\n%s", diff)
	}
	stream := bytes.Join([][]byte{whole(request), whole(answer), whole(failed)}, nil)
	r := newFrameReader(iotest.OneByteReader(bytes.NewReader(stream)), 4<<20)
	for _, want := range []frame{request, answer, failed} {
		got, err := r.next()
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(frame{})); err != nil || diff != "" {
			t.Fatalf("%v (-want +got): %s", err, diff)
		}
	}
	if large := failed.tooLarge(); large.Size != 5<<20 || large.Max != 4<<20 {
		t.Fatal(large)
	}
	h, err := readHello(bytes.NewReader(sampleHello().append(nil)), 1)
	if err != nil || h != sampleHello() {
		t.Fatal(h, err)
	}
	w, err := readWelcome(bytes.NewReader(sampleWelcome().append(nil)), 1)
	if err != nil || w != sampleWelcome() {
		t.Fatal(w, err)
	}
}

// bad input: malformed frames
func TestMalformedFramesAreRefusedWithWhatIsWrong(t *testing.T) {
	header := func(length uint32, typ, class, kind byte) []byte {
		b := []byte{byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length), typ, class, kind}
		return append(b, make([]byte, 8+64)...)
	}
	for name, test := range map[string]struct {
		bytes []byte
		want  string
	}{
		"a length below the header":  {header(10, 1, 0, 0), "shorter than a header"},
		"a length of zero":           {header(0, 1, 0, 0), "shorter than a header"},
		"a body over the limit":      {header(afterSize+101, 1, 0, 0), "101 bytes is over the limit of 100"},
		"a length of 4 GiB":          {header(0xffffffff, 1, 0, 0), "over the limit"},
		"an unknown type":            {header(afterSize, 4, 0, 0), "type 4"},
		"an unknown class":           {header(afterSize, 1, 4, 0), "class 4"},
		"an answer of a kind":        {header(afterSize, 2, 0, 1), "an answer with a class or a kind"},
		"a failed answer of no size": {header(afterSize, 3, 0, 0), "a failed answer of 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newFrameReader(bytes.NewReader(test.bytes), 100).next()
			var malformed *FrameError
			if !errors.As(err, &malformed) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// bad input: a truncated frame
func TestAStreamThatEndsInsideAFrameIsNoCleanEnd(t *testing.T) {
	f := frame{id: 1, typ: frameRequest, body: make([]byte, 100000)}
	whole := append(f.appendHeader(nil), f.body...)
	for _, cut := range []int{1, 14, 15, 16, 70000, len(whole) - 1} {
		if _, err := newFrameReader(bytes.NewReader(whole[:cut]), 1<<20).next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	if _, err := newFrameReader(bytes.NewReader(nil), 1<<20).next(); err != io.EOF {
		t.Fatal(err)
	}
}

// bad input: a length without its bytes
func TestALengthAloneAllocatesLittle(t *testing.T) {
	f := frame{id: 1, typ: frameRequest, body: make([]byte, 64<<20)}
	head := f.appendHeader(nil)
	r := newFrameReader(bytes.NewReader(head), 64<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := r.next()
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Fatalf("%d bytes, %v", after.TotalAlloc-before.TotalAlloc, err)
	}
}

func FuzzFrame(f *testing.F) {
	for _, s := range []frame{{id: 1, typ: frameRequest, class: Write, kind: 3, body: []byte("body")}, {id: 1 << 40, typ: frameAnswer}, tooLargeFrame(1, 2, 3)} {
		whole := append(s.appendHeader(nil), s.body...)
		f.Add(whole)
		f.Add(append(whole, whole[:len(whole)-1]...))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(bytes.Repeat([]byte{0, 0, 0, 11, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 9))
	const limit = 1 << 10
	f.Fuzz(func(t *testing.T, stream []byte) {
		fast := &frameReader{in: bytes.NewReader(stream), maxBody: limit, buf: make([]byte, 64)} // so that most bodies are large
		slow := &frameReader{in: iotest.OneByteReader(bytes.NewReader(stream)), maxBody: limit, buf: make([]byte, 4096)}
		var written []byte
		for {
			whole := fast.more()
			got, err := fast.next()
			other, errOther := slow.next()
			if fmt.Sprint(err) != fmt.Sprint(errOther) {
				t.Fatalf("%v, but byte by byte %v", err, errOther)
			}
			if err != nil {
				if whole && (err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)) {
					t.Fatalf("a whole frame was there: %v", err)
				}
				break
			}
			if diff := cmp.Diff(got, other, cmp.AllowUnexported(frame{})); diff != "" || len(got.body) > limit {
				t.Fatalf("%d bytes; byte by byte: %s", len(got.body), diff)
			}
			written = append(got.appendHeader(written), got.body...)
		}
		if !bytes.HasPrefix(stream, written) {
			t.Fatal("frames are not written as they were read")
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add(sampleHello().append(nil), true)
	f.Add(sampleWelcome().append(nil), false)
	other := sampleHello()
	other.version = 2
	f.Add(other.append(nil), true)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), true)
	f.Add([]byte("hubm\x00\x01\xff\xff"), false)
	f.Fuzz(func(t *testing.T, message []byte, ofDialler bool) {
		in := bytes.NewReader(message)
		var again []byte
		if ofDialler {
			h, err := readHello(in, 1)
			if err != nil || h.version != 1 {
				return
			}
			again = h.append(nil)
			welcome{version: 1, epoch: 1, cluster: "production", name: "x"}.judge(h, 0)
		} else {
			w, err := readWelcome(in, 1)
			if err != nil || w.version != 1 {
				return
			}
			again = w.append(nil)
			_ = sampleHello().judge(w)
		}
		if !bytes.Equal(again, message[:len(message)-in.Len()]) {
			t.Fatalf("read %x, written %x", message, again)
		}
	})
}
