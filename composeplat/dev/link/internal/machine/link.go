package machine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"composeplat/link/internal/wire"
)

const (
	minRetryDelay   = 500 * time.Millisecond
	maxRetryDelay   = 3 * time.Second
	flushTimeout    = 10 * time.Second
	interruptStatus = 130
	// onePress is the time in which two interrupts are the same Ctrl-C: the terminal sends it, and the parent process too.
	onePress = 2 * shortDelay
)

var errTakenOver = errors.New("another `platform up` took over")

// Up links this machine to the container until the session ends, and returns its exit status.
func Up(config *Config, events *Events) int {
	status, err := up(config, events)
	if err != nil {
		status, reason := StartFailure(err)
		events.Emit("failed", Event{"reason": reason})
		return status
	}
	return status
}

// A client is one run of Up. It makes a new link whenever one is lost.
type client struct {
	config  *Config
	events  *Events
	name    string
	source  string
	session *session
	folders []*folder
	files   []*file
	ports   *forwards
	signals chan os.Signal

	lock    sync.Mutex
	control wire.Conn
	// askedToEnd is the signal that asked the program to end, if one has.
	askedToEnd atomic.Int32
}

func up(config *Config, events *Events) (int, error) {
	reach, err := newDialer(config)
	if err != nil {
		return 0, err
	}
	c := &client{config: config, events: events, name: rand.Text(), session: newSession(config),
		signals: make(chan os.Signal, 4)}
	notifyEnd(c.signals)
	// A write that nobody reads is an error then, and not the end of this process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go c.watchParent(os.Getppid())
	return c.run(reach)
}

// notifyEnd passes on the signals that end a program.
func notifyEnd(signals chan<- os.Signal) {
	signal.Notify(signals, syscall.SIGTERM)
	// nohup ignores SIGHUP, and a shell SIGINT in the background, which Notify would undo.
	for _, number := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if !signal.Ignored(number) {
			signal.Notify(signals, number)
		}
	}
}

// watchParent ends the session when the parent process is gone: nothing else would, and the session has the terminal.
func (c *client) watchParent(parent int) {
	waitForParent(parent)
	// The first signal is for the program in the container; the second ends the link, whatever the program does.
	c.signals <- syscall.SIGHUP
	time.Sleep(40 * shortDelay)
	c.signals <- syscall.SIGHUP
}

func (c *client) run(reach dialer) (int, error) {
	config, events := c.config, c.events
	defer c.session.restore()
	if err := os.MkdirAll(config.State, 0o700); err != nil {
		return 0, err
	}
	source, err := findSource(config)
	if err != nil {
		return 0, err
	}
	c.source = source
	for number, folder := range config.Folders {
		if folder.File {
			c.files = append(c.files, &file{number: number, config: folder, state: config.State, events: events,
				problems: problems{events: events, folder: number}, flushes: make(chan chan struct{})})
			continue
		}
		made, err := newFolder(number, folder, config.State, events)
		if err != nil {
			return 0, err
		}
		defer made.close()
		c.folders = append(c.folders, made)
	}
	ports, err := listen(config, events)
	if err != nil {
		return 0, err
	}
	c.ports = ports
	defer c.ports.close()
	return c.keepLinked(reach)
}

// keepLinked makes a new link whenever one is lost, until the session has ended.
func (c *client) keepLinked(reach dialer) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan ending, 1)
	finish := func(how ending) {
		select {
		case ended <- how:
		default: // only the first counts
		}
		cancel()
	}
	go c.session.readInput()
	go c.handleSignals(ctx, finish)
	again, pause, emitted := false, minRetryDelay, ""
	for {
		linked := false
		why := c.runLink(ctx, reach, again, func() { linked = true }, finish)
		select {
		case over := <-ended:
			return over.status, over.err
		default:
		}
		if errors.Is(why, errTakenOver) {
			return 0, errTakenOver
		}
		if number := c.askedToEnd.Load(); number != 0 {
			// Nobody waits for the program to end, and its container may be gone.
			return 128 + int(number), nil
		}
		if !linked && !again && (isRefused(why) || errors.Is(why, wire.ErrNotAnAgent)) {
			return 0, why
		}
		if linked || emitted != why.Error() {
			emitted = why.Error()
			c.events.Emit("disconnected", Event{"reason": emitted})
		}
		if linked {
			again, pause = true, minRetryDelay
		}
		select {
		case over := <-ended:
			return over.status, over.err
		case <-time.After(pause):
		}
		pause = min(pause*3/2, maxRetryDelay)
	}
}

// An ending is the session's exit status, or the error that ended it.
type ending struct {
	status int
	err    error
}

// handleSignals handles signals, and a Ctrl-C that is typed while there is no session.
func (c *client) handleSignals(ctx context.Context, finish func(ending)) {
	asked := false
	var pressed time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.session.interrupted:
			finish(ending{status: interruptStatus})
		case received := <-c.signals:
			number := received.(syscall.Signal)
			if number == syscall.SIGINT {
				if time.Since(pressed) < onePress {
					continue
				}
				pressed = time.Now()
			}
			if c.session.isAttached() && !asked && (!c.config.Terminal || number != syscall.SIGINT) {
				asked = true
				if number != syscall.SIGINT {
					c.askedToEnd.Store(int32(number))
				}
				if c.config.Terminal {
					c.notify(wire.Notice{End: true})
				} else {
					c.notify(wire.Notice{Signal: int(number)})
				}
				continue
			}
			c.notify(wire.Notice{End: true})
			time.Sleep(shortDelay)
			finish(ending{status: 128 + int(number)})
		}
	}
}

func (c *client) notify(notice wire.Notice) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.control != nil {
		_ = wire.Send(c.control, notice)
	}
}

// runLink makes a link and serves it until it is lost.
func (c *client) runLink(ctx context.Context, reach dialer, again bool, linked func(), finish func(ending)) error {
	link, pod, err := dialLink(ctx, reach)
	if err != nil {
		return err
	}
	// All work over this link must have ended before the next one is made.
	var working sync.WaitGroup
	defer working.Wait()
	defer link.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	control, welcome, err := c.greet(ctx, link)
	if err != nil {
		return err
	}
	linked()
	kind := "new"
	if welcome.Alive {
		kind = "same"
	}
	c.events.Emit("connected", Event{"pod": pod, "reconnected": again, "session": kind})
	return c.serve(ctx, link, control, welcome, &working, finish)
}

// serve syncs, forwards and runs the session over a link, until it is lost or the session has ended.
func (c *client) serve(ctx context.Context, link *wire.Link, control wire.Conn, welcome wire.Welcome,
	working *sync.WaitGroup, finish func(ending),
) error {
	c.setControl(control)
	defer c.setControl(nil)
	taken := make(chan struct{})
	go c.readNotices(control, taken)
	c.ports.use(link)
	defer c.ports.use(nil)
	go acceptReverse(ctx, link, c.config)
	for _, reverse := range c.config.Reverse {
		if stream, err := openStream(ctx, link, "reverse", reverse.Port); err == nil {
			defer stream.Close()
		}
	}
	failed := make(chan error, len(c.folders))
	over := make(chan ending, 1)
	ready := c.startSync(ctx, link, welcome, failed, working)
	working.Go(func() { c.runSession(ctx, link, ready, over) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-taken:
		return errTakenOver
	case <-link.Closed():
		// The agent's last notice may not have been read yet.
		select {
		case <-taken:
			return errTakenOver
		case <-time.After(shortDelay):
		}
		return link.Err()
	case err := <-failed:
		return err
	case how := <-over:
		c.session.restore()
		if how.err == nil {
			c.events.Emit("ended", Event{"status": how.status})
			c.flush(ctx, link)
		}
		finish(how)
		return errors.New("the session is over")
	}
}

// dialLink makes a link, and returns the pod where its other end is.
func dialLink(ctx context.Context, reach dialer) (*wire.Link, string, error) {
	carrier, pod, err := reach.open(ctx)
	if err != nil {
		return nil, "", err
	}
	// An agent that does not answer must not delay the end.
	stop := context.AfterFunc(ctx, func() { carrier.Close() })
	defer stop()
	link, err := wire.Start(carrier, true)
	return link, pod, err
}

// runSession attaches to the session when everything is ready, and sends its ending. A lost link does not end it.
func (c *client) runSession(ctx context.Context, link *wire.Link, ready <-chan struct{}, over chan<- ending) {
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	status, err := c.session.run(ctx, link)
	var refused sessionError
	if err == nil {
		over <- ending{status: status}
	} else if errors.Is(err, errNoReader) {
		c.notify(wire.Notice{End: true})
		over <- ending{status: 128 + int(syscall.SIGPIPE)}
	} else if errors.As(err, &refused) {
		// A program that was started all the same has no use.
		c.notify(wire.Notice{End: true})
		over <- ending{err: err}
	}
}

// setControl sets the stream for notices; with nil, they are dropped.
func (c *client) setControl(control wire.Conn) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.control = control
}

func (c *client) greet(ctx context.Context, link *wire.Link) (wire.Conn, wire.Welcome, error) {
	var welcome wire.Welcome
	limited, cancel := context.WithTimeout(ctx, wire.MaxSilence)
	defer cancel()
	stop := context.AfterFunc(limited, func() { link.Close() })
	defer stop()
	control, err := openStream(limited, link, "control", nil)
	if err != nil {
		return nil, welcome, err
	}
	if err := wire.Send(control, wire.Hello{Link: c.name, Session: c.session.id, Source: c.source}); err != nil {
		return nil, welcome, err
	}
	if err := wire.Receive(control, &welcome); err != nil {
		return nil, welcome, err
	}
	if welcome.TakenOver {
		return nil, welcome, errTakenOver
	}
	if welcome.Error != "" {
		return nil, welcome, errors.New(welcome.Error)
	}
	return control, welcome, nil
}

func (c *client) readNotices(control wire.Conn, taken chan<- struct{}) {
	for {
		var notice wire.Notice
		if err := wire.Receive(control, &notice); err != nil {
			return
		}
		switch {
		case notice.TakenOver:
			close(taken)
			return
		case notice.Reverse != 0:
			c.events.Emit("problem", Event{"folder": -1, "side": "container", "path": "",
				"reason": "can't listen on port " + strconv.Itoa(notice.Reverse) + " in the container: " + notice.Why})
		}
	}
}

// startSync starts the sync of all folders and files. The channel is closed when each has been in sync once, or can't be,
// and at once for a session that was running before.
func (c *client) startSync(ctx context.Context, link *wire.Link, welcome wire.Welcome, failed chan<- error,
	working *sync.WaitGroup,
) <-chan struct{} {
	readyParts := make(chan struct{}, len(c.folders)+len(c.files))
	settle := func() { readyParts <- struct{}{} }
	for _, folder := range c.folders {
		working.Go(func() {
			if err := folder.run(ctx, link, welcome, settle); err != nil {
				failed <- err
			}
		})
	}
	for _, file := range c.files {
		working.Go(func() { c.keepFile(ctx, link, file, welcome, sync.OnceFunc(settle)) })
	}
	ready := make(chan struct{})
	if welcome.Alive {
		close(ready)
	}
	go func() {
		for range cap(readyParts) {
			select {
			case <-readyParts:
			case <-ctx.Done():
				return
			}
		}
		if welcome.Fresh {
			c.notify(wire.Notice{Synced: true})
		}
		if !welcome.Alive {
			close(ready)
		}
	}()
	return ready
}

// keepFile syncs a file until the link is lost. An error that ends only the file's own stream is reported and retried.
func (c *client) keepFile(ctx context.Context, link *wire.Link, file *file, welcome wire.Welcome, ready func()) {
	for emitted := ""; ; {
		err := file.run(ctx, link, welcome, ready)
		select {
		case <-ctx.Done():
			return
		case <-link.Closed():
			return
		case <-time.After(longDelay):
		}
		// A file that fails must not delay the session.
		ready()
		if err != nil && err.Error() != emitted {
			emitted = err.Error()
			c.events.Emit("problem", Event{"folder": file.number, "side": "container", "path": "", "reason": emitted})
		}
	}
}

// flush syncs all folders once more, unless the link is lost.
func (c *client) flush(ctx context.Context, link *wire.Link) {
	limited, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	go func() {
		select {
		case <-link.Closed():
			cancel()
		case <-limited.Done():
		}
	}()
	var all sync.WaitGroup
	for _, folder := range c.folders {
		all.Go(func() { folder.flush(limited) })
	}
	for _, file := range c.files {
		all.Go(func() { file.flush(limited) })
	}
	all.Wait()
}

// openStream opens a stream for a purpose.
func openStream(ctx context.Context, link *wire.Link, kind string, body any) (wire.Conn, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	stream, err := link.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	if err := wire.Send(stream, wire.Open{Kind: kind, Body: raw}); err != nil {
		stream.Close()
		return nil, err
	}
	return stream, nil
}

// maxReverseConnections is how many connections through reverse forwards may be open at once.
const maxReverseConnections = 256

// acceptReverse accepts the connections of reverse forwards.
func acceptReverse(ctx context.Context, link *wire.Link, config *Config) {
	free := make(chan struct{}, maxReverseConnections)
	for {
		stream, err := link.AcceptStream(ctx)
		if err != nil {
			return
		}
		select {
		case free <- struct{}{}:
			go func() {
				joinReverse(stream, config)
				<-free
			}()
		default:
			stream.Close()
		}
	}
}

// joinReverse connects a stream to the local address of its port, and to no other.
func joinReverse(stream wire.Conn, config *Config) {
	defer stream.Close()
	var head wire.Open
	if wire.ReceiveAtMost(stream, &head, wire.MaxHead) != nil || head.Kind != "reverse" {
		return
	}
	for _, reverse := range config.Reverse {
		if string(head.Body) != strconv.Itoa(reverse.Port) {
			continue
		}
		if connection, err := dialHere(reverse.To); err == nil {
			wire.Join(stream, connection.(*net.TCPConn))
			return
		}
	}
}

// dialHere connects to an address of this machine. Some servers listen on only one of the loopback addresses.
func dialHere(address string) (net.Conn, error) {
	connection, err := net.DialTimeout("tcp", address, requestTimeout)
	if host, port, split := net.SplitHostPort(address); err != nil && split == nil && host == "127.0.0.1" {
		return net.DialTimeout("tcp", net.JoinHostPort("::1", port), requestTimeout)
	}
	return connection, err
}
