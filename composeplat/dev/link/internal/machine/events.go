package machine

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Events tells the parent process what happens: one JSON object a line.
type Events struct {
	lock sync.Mutex
	out  io.Writer
}

func NewEvents(out io.Writer) *Events { return &Events{out: out} }

// An Event has its kind under "event", and fields that belong to it.
type Event map[string]any

func (e *Events) Tell(kind string, fields Event) {
	told := Event{"event": kind}
	for name, value := range fields {
		told[name] = value
	}
	line, err := json.Marshal(told)
	if err != nil {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	_, _ = e.out.Write(append(line, '\n'))
}

// lasting is how old a problem must be to be told: many pass with the next scan.
const lasting = 1500 * time.Millisecond

// problems tells each problem of a folder once while it lasts, and when it is solved.
type problems struct {
	events *Events
	folder int
	known  map[problem]*trouble
}

type problem struct{ side, path, why string }

type trouble struct {
	since time.Time
	told  bool
}

// observe takes all that are there now. It says whether some are too young to be told.
func (p *problems) observe(now []problem) (young bool) {
	if p.known == nil {
		p.known = map[problem]*trouble{}
	}
	present := map[problem]bool{}
	for _, one := range now {
		present[one] = true
		known := p.known[one]
		if known == nil {
			known = &trouble{since: time.Now()}
			p.known[one] = known
		}
		if !known.told && time.Since(known.since) >= lasting {
			known.told = true
			p.tell("problem", one)
		}
		young = young || !known.told
	}
	for one, known := range p.known {
		if !present[one] {
			delete(p.known, one)
			if known.told {
				p.tell("resolved", one)
			}
		}
	}
	return young
}

func (p *problems) tell(kind string, one problem) {
	p.events.Tell(kind, Event{"folder": p.folder, "side": one.side, "path": one.path, "reason": one.why})
}
