package machine

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mutagen-io/mutagen/pkg/multiplexing"

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
		events.Tell("failed", Event{"why": err.Error()})
		return 1
	}
	return status
}

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
	control *multiplexing.Stream
	synced  int
	last    string
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
	go u.session.read()
	ended := make(chan ending, 1)
	go u.heed(ended)
	again, pause := false, retryFirst
	for {
		result := make(chan error, 1)
		linked := false
		attempt, stop := context.WithCancel(ctx)
		go func() { result <- u.once(attempt, reach, again, func() { linked = true }, ended) }()
		var why error
		select {
		case over := <-ended:
			stop()
			<-result
			return over.status, over.err
		case why = <-result:
			stop()
		}
		select {
		case over := <-ended:
			return over.status, over.err
		default:
		}
		if errors.Is(why, errTaken) {
			return 0, errTaken
		}
		if linked || u.last != why.Error() {
			u.last = why.Error()
			u.events.Tell("lost", Event{"why": why.Error()})
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
func (u *upper) heed(ended chan<- ending) {
	asked := false
	for {
		select {
		case <-u.session.interrupted:
			u.finish(ended, ending{status: interrupt})
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
			u.finish(ended, ending{status: 128 + int(number)})
		}
	}
}

func (u *upper) finish(ended chan<- ending, how ending) {
	select {
	case ended <- how:
	default:
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
func (u *upper) once(ctx context.Context, reach reach, again bool, linked func(), ended chan<- ending) error {
	carrier, pod, err := reach.open(ctx)
	if err != nil {
		return err
	}
	link, err := wire.Start(carrier, true)
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
	u.events.Tell("connected", Event{"pod": pod, "again": again, "session": kind})
	u.lock.Lock()
	u.control = control
	u.lock.Unlock()
	defer func() {
		u.lock.Lock()
		u.control = nil
		u.lock.Unlock()
	}()
	taken := make(chan struct{})
	go u.notices(control, taken)
	u.ports.use(link)
	defer u.ports.use(nil)
	go accept(ctx, link, u.config)
	for _, reverse := range u.config.Reverse {
		if stream, err := open(ctx, link, "reverse", reverse.Port); err == nil {
			defer stream.Close()
		}
	}
	failed := make(chan error, 1+len(u.folders))
	ready := u.sync(ctx, link, welcome, failed, &working)
	if welcome.Alive {
		close(ready)
	}
	over := make(chan ending, 1)
	working.Go(func() {
		select {
		case <-ready:
		case <-ctx.Done():
			return
		}
		if status, err := u.session.run(ctx, link); err == nil {
			over <- ending{status: status}
		} else if errors.Is(err, errSession) {
			over <- ending{err: err}
		}
	})
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
			u.flush(ctx)
		}
		u.finish(ended, how)
		return errors.New("the session is over")
	}
}

func (u *upper) welcome(ctx context.Context, link *wire.Link) (*multiplexing.Stream, wire.Welcome, error) {
	var welcome wire.Welcome
	limited, cancel := context.WithTimeout(ctx, wire.MostSilence)
	defer cancel()
	stop := context.AfterFunc(limited, func() { link.Close() })
	defer stop()
	control, err := open(limited, link, "control", nil)
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
	return control.(*multiplexing.Stream), welcome, nil
}

func (u *upper) notices(control *multiplexing.Stream, taken chan<- struct{}) {
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
				"why": "can't listen at port " + itoa(notice.Reverse) + " there: " + notice.Why})
		}
	}
}

// sync starts all folders and files. The channel is closed when each folder has been the same on both sides once.
func (u *upper) sync(ctx context.Context, link *wire.Link, welcome wire.Welcome, failed chan<- error,
	working *sync.WaitGroup,
) chan struct{} {
	ready := make(chan struct{})
	var waiting sync.WaitGroup
	for _, folder := range u.folders {
		waiting.Add(1)
		working.Go(func() {
			if err := folder.run(ctx, link, welcome, waiting.Done); err != nil {
				failed <- err
			}
		})
	}
	for _, file := range u.files {
		waiting.Add(1)
		working.Go(func() { u.keepFile(ctx, link, file, welcome, sync.OnceFunc(waiting.Done)) })
	}
	go func() {
		waiting.Wait()
		if ctx.Err() == nil {
			if welcome.Fresh {
				u.notify(wire.Notice{Used: true})
			}
			if !welcome.Alive {
				close(ready)
			}
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
		if err != nil && err.Error() != told {
			told = err.Error()
			u.events.Tell("problem", Event{"folder": file.number, "side": "container", "path": "", "why": told})
		}
	}
}

func (u *upper) flush(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, flushing)
	defer cancel()
	var all sync.WaitGroup
	for _, folder := range u.folders {
		all.Go(func() { folder.flush(limited) })
	}
	all.Wait()
}

// accept takes the connections that come in through reverse forwards.
func accept(ctx context.Context, link *wire.Link, config *Config) {
	for {
		stream, err := link.AcceptStream(ctx)
		if err != nil {
			return
		}
		go func() {
			var head wire.Open
			if wire.Receive(stream, &head) != nil || head.Kind != "reverse" {
				stream.Close()
				return
			}
			for _, reverse := range config.Reverse {
				if string(head.Body) == itoa(reverse.Port) {
					if connection, err := net.DialTimeout("tcp", reverse.To, asking); err == nil {
						wire.Join(stream, connection.(*net.TCPConn))
						return
					}
				}
			}
			stream.Close()
		}()
	}
}
