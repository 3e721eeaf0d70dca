package wire

import (
	"errors"
	"net"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	packed, err := Pack("message", []byte("rest"))
	must(t, err)
	var message string
	rest, err := Unpack(packed, &message)
	must(t, err)
	if message != "message" || string(rest) != "rest" {
		t.Fatalf("%q and %q", message, rest)
	}
	for length := range len(packed) - len("rest") {
		if rest, err := Unpack(packed[:length], &message); err == nil {
			t.Fatalf("%d bytes are enough for %q", length, rest)
		}
	}
}

// A failing listener has too many open files once, and is closed then.
type failing struct {
	net.Listener
	failures []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.failures) == 0 {
		one, _ := net.Pipe()
		f.failures = []error{net.ErrClosed}
		return one, nil
	}
	failure := f.failures[0]
	f.failures = f.failures[1:]
	return nil, failure
}

func TestAcceptGoesOnAfterAFailure(t *testing.T) {
	taken := 0
	Accept(&failing{failures: []error{errors.New("too many open files")}}, func(connection net.Conn) {
		taken++
		connection.Close()
	})
	if taken != 1 {
		t.Fatalf("%d connections", taken)
	}
}
