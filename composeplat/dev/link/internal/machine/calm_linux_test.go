package machine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Each side changes its own files: then there is no conflict, and both sides are the same at the end, whatever is
// interrupted meanwhile.
func TestChangesOfBothSides(t *testing.T) {
	for _, how := range []string{"nothing", "cut", "kill", "restart", "restart without modes", "cut one way"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			changeBothSides(t, how)
		})
	}
}

func changeBothSides(t *testing.T, how string) {
	seed := uint64(time.Now().UnixNano())
	w := newWorld(t)
	for number := range 300 {
		write(t, w.here(fmt.Sprintf("still/%d/%d", number%20, number)), fmt.Sprint(number))
	}
	w.config.Folders[0].OneWay = strings.HasSuffix(how, "one way")
	marker := filepath.Join(w.root, "marker")
	write(t, marker, "volume\n")
	w.hold(nil, marker)
	modeless := strings.HasSuffix(how, "without modes")
	if modeless {
		w.startWithoutModes()
	} else {
		w.startSynced()
	}
	plain := func(listing string) string {
		if modeless {
			listing = regexp.MustCompile(` [-dL][-rwx]{9} `).ReplaceAllString(listing, " ")
		}
		return listing
	}
	var both sync.WaitGroup
	for number, side := range []string{"here", "there"} {
		random := rand.New(rand.NewPCG(seed, uint64(number)))
		root := filepath.Join(w.root, side)
		name := func(depth int) string {
			path := root
			for range random.IntN(depth) {
				path = filepath.Join(path, fmt.Sprintf("%s%d", side, random.IntN(3)))
			}
			return filepath.Join(path, fmt.Sprintf("%s%d", side, random.IntN(3)))
		}
		both.Go(func() {
			for step := range 250 {
				path := name(3)
				_ = os.MkdirAll(filepath.Dir(path), 0o755)
				switch random.IntN(10) {
				case 0, 1:
					_ = os.RemoveAll(path)
				case 2, 3:
					to := name(3)
					_ = os.MkdirAll(filepath.Dir(to), 0o755)
					_ = os.Rename(path, to)
				case 4:
					_ = os.Remove(path)
					_ = os.Symlink("x"+side, path)
				case 5:
					_ = os.Chmod(path, []os.FileMode{0o644, 0o640, 0o755, 0o750}[random.IntN(4)])
				case 6:
					_ = os.MkdirAll(path, 0o755)
				case 7:
					_ = os.RemoveAll(path)
					_ = os.MkdirAll(filepath.Join(path, side+"0", side+"1"), 0o755)
					_ = os.WriteFile(filepath.Join(path, side+"0", side+"1", "file"), fmt.Append(nil, step), 0o644)
				default:
					_ = os.WriteFile(path, fmt.Append(nil, side, step), 0o644)
				}
				pause := time.Duration(random.IntN(60)) * time.Millisecond
				if random.IntN(3) == 0 {
					pause = 0
				}
				time.Sleep(pause)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		both.Wait()
		close(over)
	}()
	cutter := rand.New(rand.NewPCG(seed, 9))
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-time.After(time.Duration(20+cutter.IntN(600)) * time.Millisecond):
			switch strings.Fields(how)[0] {
			case "kill":
				w.hold(nil, marker)
			case "cut":
				w.cut()
			case "restart":
				w.stop()
				if modeless {
					w.startWithoutModes()
				} else {
					w.start()
				}
			}
		}
	}
	own := func(side string) string {
		var out []string
		listing := listingNow(filepath.Join(w.root, side))
		for strings.HasPrefix(listing, "20") {
			listing = listingNow(filepath.Join(w.root, side))
		}
		for _, line := range strings.Split(listing, "\n") {
			if strings.HasPrefix(line, side) {
				out = append(out, line)
			}
		}
		return strings.Join(out, "\n")
	}
	ownHere, ownThere := own("here"), own("there")
	before := ""
	w.eventually("both sides are the same", func() bool {
		time.Sleep(300 * time.Millisecond)
		here, there := plain(listingNow(w.here(""))), plain(listingNow(w.there("")))
		same := here == there && here == before
		before = here
		return same
	})
	if own("here") != ownHere {
		t.Errorf("changed here: %s", difference(ownHere, own("here")))
	}
	if own("there") != ownThere && !w.config.Folders[0].OneWay {
		t.Errorf("changed there: %s", difference(ownThere, own("there")))
	}
	if count := w.count("conflict"); count > 0 {
		t.Errorf("seed %d: %v", seed, w.all("conflict"))
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, event := range w.all("synced") {
				if event["first"] == true {
					t.Log(event)
				}
			}
			t.Log(w.all("sync-stopped"), w.all("problem"), w.all("disconnected"))
			t.Log(difference(listingNow(w.here("")), listingNow(w.there(""))))
		}
	})
}
