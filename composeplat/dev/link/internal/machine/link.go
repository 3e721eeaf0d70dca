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
	"syscall"
	"time"

	"composeplat/link/internal/wire"
)

const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 3 * time.Second
	flushing   = 10 * time.Second
	interrupt  = 130
)

var errTaken = errors.New("another `platform up` took over")

// Up links this machine to the container until the session ends, and returns its exit status.
func Up(config *Config, events *Events) int {
	status, err := up(config, events)
	if err != nil {
		events.Tell("failed", Event{"reason": err.Error()})
		return 1
	}
	return status
}

// An upper is one run of Up, over one link after another.
type upper struct {
	config  *Config
	events  *Events
	name    string
	session *session
	folders []*folder
	files   []*file
	ports   *forwards
	told    chan os.Signal

	lock    sync.Mutex
	control wire.Conn
}

func up(config *Config, events *Events) (int, error) {
	reach, err := newReach(config)
	if err != nil {
		return 0, err
	}
	u := &upper{config: config, events: events, name: rand.Text(), session: newSession(config),
		told: make(chan os.Signal, 4)}
	signal.Notify(u.told, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go u.orphaned(os.Getppid())
	return u.run(reach)
}

// orphaned ends the link when the command line is gone: nobody else would, and the terminal is held by it.
func (u *upper) orphaned(parent int) {
	for os.Getppid() == parent {
		time.Sleep(10 * soon)
	}
	// The first is the program's to hear; the second ends the link, whatever the program does.
	u.told <- syscall.SIGHUP
	time.Sleep(40 * soon)
	u.told <- syscall.SIGHUP
}

func (u *upper) run(reach reach) (int, error) {
	config, events := u.config, u.events
	defer u.session.restore()
	if err := os.MkdirAll(config.State, 0o700); err != nil {
		return 0, err
	}
	for number, folder := range config.Folders {
		if folder.File {
			u.files = append(u.files, &file{number: number, config: folder, state: config.State, events: events,
				problems: problems{events: events, folder: number}})
			continue
		}
		made, err := newFolder(number, folder, config.State, events)
		if err != nil {
			return 0, err
		}
		defer made.close()
		u.folders = append(u.folders, made)
	}
	ports, err := listen(config, events)
	if err != nil {
		return 0, err
	}
	u.ports = ports
	defer u.ports.close()
	return u.keep(reach)
}

// keep makes one link after another until the session is over.
func (u *upper) keep(reach reach) (int, error) {
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
	go u.session.read()
	go u.heed(ctx, finish)
	again, pause, told := false, retryFirst, ""
	for {
		linked := false
		why := u.once(ctx, reach, again, func() { linked = true }, finish)
		select {
		case over := <-ended:
			return over.status, over.err
		default:
		}
		if errors.Is(why, errTaken) {
			return 0, errTaken
		}
		if linked || told != why.Error() {
			told = why.Error()
			u.events.Tell("disconnected", Event{"reason": told})
		}
		if linked {
			again, pause = true, retryFirst
		}
		select {
		case over := <-ended:
			return over.status, over.err
		case <-time.After(pause):
		}
		pause = min(pause*3/2, retryMost)
	}
}

// An ending is how the session ended, or why it can't go on.
type ending struct {
	status int
	err    error
}

// heed does what signals and a lonely Ctrl-C ask for.
func (u *upper) heed(ctx context.Context, finish func(ending)) {
	asked := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.session.interrupted:
			finish(ending{status: interrupt})
		case received := <-u.told:
			number := received.(syscall.Signal)
			if u.session.attached() && !asked && (!u.config.Terminal || number != syscall.SIGINT) {
				asked = true
				if u.config.Terminal {
					u.notify(wire.Notice{End: true})
				} else {
					u.notify(wire.Notice{Signal: int(number)})
				}
				continue
			}
			u.notify(wire.Notice{End: true})
			time.Sleep(soon)
			finish(ending{status: 128 + int(number)})
		}
	}
}

func (u *upper) notify(notice wire.Notice) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.control != nil {
		_ = wire.Send(u.control, notice)
	}
}

// once makes a link and serves it for as long as it lasts.
func (u *upper) once(ctx context.Context, reach reach, again bool, linked func(), finish func(ending)) error {
	link, pod, err := reached(ctx, reach)
	if err != nil {
		return err
	}
	// The next link must find nothing that still works over this one.
	var working sync.WaitGroup
	defer working.Wait()
	defer link.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	control, welcome, err := u.welcome(ctx, link)
	if err != nil {
		return err
	}
	linked()
	kind := "new"
	if welcome.Alive {
		kind = "same"
	}
	u.events.Tell("connected", Event{"pod": pod, "reconnected": again, "session": kind})
	return u.serve(ctx, link, control, welcome, &working, finish)
}

// serve does over a link all that there is to do, until it is lost, or the session is over.
func (u *upper) serve(ctx context.Context, link *wire.Link, control wire.Conn, welcome wire.Welcome,
	working *sync.WaitGroup, finish func(ending),
) error {
	u.use(control)
	defer u.use(nil)
	taken := make(chan struct{})
	go u.notices(control, taken)
	u.ports.use(link)
	defer u.ports.use(nil)
	go accept(ctx, link, u.config)
	for _, reverse := range u.config.Reverse {
		if stream, err := openStream(ctx, link, "reverse", reverse.Port); err == nil {
			defer stream.Close()
		}
	}
	failed := make(chan error, len(u.folders))
	over := make(chan ending, 1)
	ready := u.sync(ctx, link, welcome, failed, working)
	working.Go(func() { u.show(ctx, link, ready, over) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-taken:
		return errTaken
	case <-link.Closed():
		// What the agent said last may still be on its way to be read.
		select {
		case <-taken:
			return errTaken
		case <-time.After(soon):
		}
		return link.Why()
	case err := <-failed:
		return err
	case how := <-over:
		u.session.restore()
		if how.err == nil {
			u.events.Tell("ended", Event{"status": how.status})
			u.flush(ctx, link)
		}
		finish(how)
		return errors.New("the session is over")
	}
}

// reached makes a link, and names the pod where its other end is.
func reached(ctx context.Context, reach reach) (*wire.Link, string, error) {
	carrier, pod, err := reach.open(ctx)
	if err != nil {
		return nil, "", err
	}
	// Whoever is asked to end must not wait for an agent that says nothing.
	stop := context.AfterFunc(ctx, func() { carrier.Close() })
	defer stop()
	link, err := wire.Start(carrier, true)
	return link, pod, err
}

// show attaches to the session as soon as all is ready, and tells how it ends; a link that is lost ends it not.
func (u *upper) show(ctx context.Context, link *wire.Link, ready <-chan struct{}, over chan<- ending) {
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	status, err := u.session.run(ctx, link)
	var refused noSession
	if err == nil {
		over <- ending{status: status}
	} else if errors.As(err, &refused) {
		over <- ending{err: err}
	}
}

// use sends notices over the control stream from now on, or nowhere.
func (u *upper) use(control wire.Conn) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.control = control
}

func (u *upper) welcome(ctx context.Context, link *wire.Link) (wire.Conn, wire.Welcome, error) {
	var welcome wire.Welcome
	limited, cancel := context.WithTimeout(ctx, wire.MostSilence)
	defer cancel()
	stop := context.AfterFunc(limited, func() { link.Close() })
	defer stop()
	control, err := openStream(limited, link, "control", nil)
	if err != nil {
		return nil, welcome, err
	}
	if err := wire.Send(control, wire.Hello{Link: u.name, Session: u.session.id}); err != nil {
		return nil, welcome, err
	}
	if err := wire.Receive(control, &welcome); err != nil {
		return nil, welcome, err
	}
	if welcome.Taken {
		return nil, welcome, errTaken
	}
	if welcome.Error != "" {
		return nil, welcome, errors.New(welcome.Error)
	}
	return control, welcome, nil
}

func (u *upper) notices(control wire.Conn, taken chan<- struct{}) {
	for {
		var notice wire.Notice
		if err := wire.Receive(control, &notice); err != nil {
			return
		}
		switch {
		case notice.Taken:
			close(taken)
			return
		case notice.Reverse != 0:
			u.events.Tell("problem", Event{"folder": -1, "side": "container", "path": "",
				"reason": "can't listen at port " + strconv.Itoa(notice.Reverse) + " there: " + notice.Why})
		}
	}
}

// sync starts all folders and files. The channel is closed when each has been the same on both sides once, or can't be;
// and at once for a session that goes on.
func (u *upper) sync(ctx context.Context, link *wire.Link, welcome wire.Welcome, failed chan<- error,
	working *sync.WaitGroup,
) <-chan struct{} {
	settled := make(chan struct{}, len(u.folders)+len(u.files))
	settle := func() { settled <- struct{}{} }
	for _, folder := range u.folders {
		working.Go(func() {
			if err := folder.run(ctx, link, welcome, settle); err != nil {
				failed <- err
			}
		})
	}
	for _, file := range u.files {
		working.Go(func() { u.keepFile(ctx, link, file, welcome, sync.OnceFunc(settle)) })
	}
	ready := make(chan struct{})
	if welcome.Alive {
		close(ready)
	}
	go func() {
		for range cap(settled) {
			select {
			case <-settled:
			case <-ctx.Done():
				return
			}
		}
		if welcome.Fresh {
			u.notify(wire.Notice{Used: true})
		}
		if !welcome.Alive {
			close(ready)
		}
	}()
	return ready
}

// keepFile syncs a file for as long as the link lasts: what ends only its own stream is told, and tried again.
func (u *upper) keepFile(ctx context.Context, link *wire.Link, file *file, welcome wire.Welcome, ready func()) {
	for told := ""; ; {
		err := file.run(ctx, link, welcome, ready)
		select {
		case <-ctx.Done():
			return
		case <-link.Closed():
			return
		case <-time.After(later):
		}
		// The session is not held up by a file that fails by itself.
		ready()
		if err != nil && err.Error() != told {
			told = err.Error()
			u.events.Tell("problem", Event{"folder": file.number, "side": "container", "path": "", "reason": told})
		}
	}
}

// flush has all folders the same once more, unless the link is lost.
func (u *upper) flush(ctx context.Context, link *wire.Link) {
	limited, cancel := context.WithTimeout(ctx, flushing)
	defer cancel()
	go func() {
		select {
		case <-link.Closed():
			cancel()
		case <-limited.Done():
		}
	}()
	var all sync.WaitGroup
	for _, folder := range u.folders {
		all.Go(func() { folder.flush(limited) })
	}
	all.Wait()
}

// openStream opens a stream that says what it is for.
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

// maxReverse is how many connections through reverse forwards there may be at once.
const maxReverse = 256

// accept takes the connections that come in through reverse forwards.
func accept(ctx context.Context, link *wire.Link, config *Config) {
	free := make(chan struct{}, maxReverse)
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

// joinReverse leads a connection to where its port is led, and no other.
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
		if connection, err := net.DialTimeout("tcp", reverse.To, asking); err == nil {
			wire.Join(stream, connection.(*net.TCPConn))
			return
		}
	}
}
