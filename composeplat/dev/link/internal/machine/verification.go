package machine

import "time"

// A verification is when a folder was last read as a whole. It is due in time, however often changes are reported: others are
// not, as those that another machine makes in a shared folder.
type verification struct {
	interval time.Duration
	last     time.Time
}

// isDue reports whether it is time, and takes it as done then.
func (v *verification) isDue(now time.Time) bool {
	if now.Sub(v.last) < v.interval {
		return false
	}
	v.last = now
	return true
}

// limit returns a pause that ends when it is time.
func (v *verification) limit(pause time.Duration, now time.Time) time.Duration {
	return min(pause, max(v.interval-now.Sub(v.last), 0))
}
