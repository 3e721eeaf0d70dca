package machine

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http/httptrace"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

const (
	waitPeriod = 5 * time.Second
	// maxSilence is as in the client library.
	maxSilence = time.Minute
)

// waits keeps the connection of a command open while one of its streams waits: for a program that does not read its input,
// or for the reader of its output, such as a pager. No sign of life passes then, and the client library takes that for a
// lost connection.
type waits struct {
	lock       sync.Mutex
	connection net.Conn
	streams    int
	// failure is why the output could not be written, or the input not be read.
	failure error
}

// stream runs a command with the streams in options. It ends where the output can't be written, as on a full disk, or the input
// can't be read: the client library leaves out the rest, and returns the status of the command.
func stream(ctx context.Context, run remotecommand.Executor, options remotecommand.StreamOptions) error {
	w := &waits{}
	ctx, end := context.WithCancel(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: w.setConnection}))
	defer end()
	failing := func(what string) func(error) {
		return func(err error) {
			w.fail(what, err)
			end()
		}
	}
	// A person sees that nothing is answered, and types little.
	if options.Stdin != nil && !options.Tty {
		options.Stdin = &waitingReader{Reader: options.Stdin, waits: w, fail: failing("the input can't be read")}
	}
	if options.Stdout != nil {
		options.Stdout = &waitingWriter{options.Stdout, w, failing("the output can't be written")}
	}
	if options.Stderr != nil {
		options.Stderr = &waitingWriter{options.Stderr, w, func(error) {}}
	}
	go w.keepOpen(ctx)
	err := run.StreamWithContext(ctx, options)
	return cmp.Or(w.streamFailure(), err)
}

func (w *waits) fail(what string, err error) {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.failure = cmp.Or(w.failure, fmt.Errorf("%s: %w", what, err))
}

func (w *waits) streamFailure() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.failure
}

func (w *waits) setConnection(got httptrace.GotConnInfo) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.connection = got.Conn
	if secure, isSecure := got.Conn.(*tls.Conn); isSecure {
		w.connection = secure.NetConn()
	}
}

func (w *waits) add(streams int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.streams += streams
}

func (w *waits) keepOpen(ctx context.Context) {
	period := time.NewTicker(waitPeriod)
	defer period.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-period.C:
			w.extend(now)
		}
	}
}

func (w *waits) extend(now time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.streams > 0 && w.connection != nil && isAnswered(w.connection) {
		// It fails on a closed connection only.
		_ = w.connection.SetDeadline(now.Add(maxSilence))
	}
}

type waitingWriter struct {
	io.Writer
	waits *waits
	fail  func(error)
}

func (w *waitingWriter) Write(text []byte) (int, error) {
	w.waits.add(1)
	defer w.waits.add(-1)
	length, err := w.Writer.Write(text)
	if err != nil {
		w.fail(err)
	}
	return length, err
}

// waitingReader counts as a stream that waits once it has given something: buffers on the way take megabytes, so nothing
// shows that the program has read all.
type waitingReader struct {
	io.Reader
	waits    *waits
	hasGiven bool
	fail     func(error)
}

func (r *waitingReader) Read(text []byte) (int, error) {
	length, err := r.Reader.Read(text)
	if length > 0 && !r.hasGiven {
		r.hasGiven = true
		r.waits.add(1)
	}
	if hasFailed(r.Reader, err) {
		r.fail(err)
	}
	return length, err
}

// hasFailed reports whether an error has cut off input. That of nohup can't be read, and has none; a terminal may be gone.
func hasFailed(input io.Reader, err error) bool {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, syscall.EBADF) {
		return false
	}
	file, isFile := input.(*os.File)
	return !isFile || !term.IsTerminal(int(file.Fd()))
}
