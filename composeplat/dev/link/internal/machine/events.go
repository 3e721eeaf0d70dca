package machine

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Events reports what happens to the parent process: one JSON object per line.
type Events struct {
	lock sync.Mutex
	out  io.Writer
}

func NewEvents(out io.Writer) *Events { return &Events{out: out} }

// An Event has its kind under "event", and fields that belong to it.
type Event map[string]any

func (e *Events) Emit(kind string, fields Event) {
	event := Event{"event": kind}
	for name, value := range fields {
		event[name] = value
	}
	line, err := json.Marshal(event)
	if err != nil {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	_, _ = e.out.Write(append(line, '\n'))
}

// minProblemAge is how old a problem must be to be reported: many are gone after the next scan.
const minProblemAge = 1500 * time.Millisecond

// problems reports each problem of a folder once, and again when it is solved.
type problems struct {
	events *Events
	folder int
	known  map[problem]*problemState
}

type problem struct{ side, path, why string }

type problemState struct {
	since   time.Time
	emitted bool
}

// observe compares with the problems that exist now. It returns whether some are too young to be reported.
func (p *problems) observe(now []problem) (pending bool) {
	if p.known == nil {
		p.known = map[problem]*problemState{}
	}
	present := map[problem]bool{}
	for _, found := range now {
		present[found] = true
		known := p.known[found]
		if known == nil {
			known = &problemState{since: time.Now()}
			p.known[found] = known
		}
		if !known.emitted && time.Since(known.since) >= minProblemAge {
			known.emitted = true
			p.emit("problem", found)
		}
		pending = pending || !known.emitted
	}
	for gone, known := range p.known {
		if !present[gone] {
			delete(p.known, gone)
			if known.emitted {
				p.emit("resolved", gone)
			}
		}
	}
	return pending
}

func (p *problems) emit(kind string, found problem) {
	p.events.Emit(kind, Event{"folder": p.folder, "side": found.side, "path": found.path, "reason": found.why})
}
