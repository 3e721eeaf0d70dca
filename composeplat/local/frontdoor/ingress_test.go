package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A path holds itself and what is below it, not what merely begins with it.
func TestWhatAPathCovers(t *testing.T) {
	for _, one := range []struct {
		prefix, path string
		covered      bool
	}{
		{"/", "/", true},
		{"/", "/a/b", true},
		{"/a", "/a", true},
		{"/a", "/a/", true},
		{"/a", "/a/b", true},
		{"/a", "/ab", false},
		{"/a", "/", false},
		{"/a/", "/a", true},
		{"/a/", "/a/b", true},
		{"/a/b", "/a", false},
	} {
		if matchesPrefix(one.prefix, one.path) != one.covered {
			t.Errorf("%s and %s: %v", one.prefix, one.path, !one.covered)
		}
	}
}

// backend is a server that says what it was asked.
func backend(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Backend", name)
		fmt.Fprintf(w, "%s %s host=%s proto=%s forwarded=%s for=%s", r.Method, r.URL.RequestURI(), r.Host,
			r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func ask(routes []route, url string) *httptest.ResponseRecorder {
	response := httptest.NewRecorder()
	handleRequest(response, httptest.NewRequest("GET", url, nil), routes)
	return response
}

// The first route of the host whose path holds the request's gets it; names of hosts have no case, and may have a port.
func TestWhichRoute(t *testing.T) {
	web, api := backend(t, "web"), backend(t, "api")
	routes := []route{
		{Host: "shop.localhost", Path: "/api", Target: api, Name: "api"},
		{Host: "shop.localhost", Path: "/", Target: web, Name: "web"},
		{Host: "only.localhost", Path: "/docs", Target: web, Name: "web"},
		{Host: "new.localhost", Path: "/", Target: "", Name: "new"},
		{Host: "gone.localhost", Path: "/", Target: "127.0.0.1:1", Name: "gone"},
	}
	for _, one := range []struct {
		url     string
		status  int
		backend string
		text    string
	}{
		{"https://shop.localhost/", 200, "web", ""},
		{"https://shop.localhost/apix", 200, "web", ""},
		{"https://shop.localhost/api/7", 200, "api", ""},
		{"https://SHOP.localhost:8443/api", 200, "api", ""},
		{"https://only.localhost/docs/a", 200, "web", ""},
		{"https://only.localhost/", 404, "", "no route for this path"},
		{"https://else.localhost/", 404, "", "no endpoint has this host"},
		{"https://new.localhost/", 503, "", "new has no ready pod yet"},
		{"https://gone.localhost/", 502, "", "gone does not answer: "},
	} {
		response := ask(routes, one.url)
		if response.Code != one.status || response.Header().Get("X-Backend") != one.backend {
			t.Errorf("%s: %d from %q", one.url, response.Code, response.Header().Get("X-Backend"))
		}
		if !strings.Contains(response.Body.String(), one.text) {
			t.Errorf("%s: %s", one.url, response.Body)
		}
	}
}

// A route may be for all hosts below a name, or for all; one that is for fewer hosts goes before it.
func TestARouteForManyHosts(t *testing.T) {
	shop, below, every := backend(t, "shop"), backend(t, "below"), backend(t, "every")
	routes := []route{
		{Host: "", Path: "/docs", Target: every, Name: "every"},
		{Host: "*.localhost", Path: "/", Target: below, Name: "below"},
		{Host: "shop.localhost", Path: "/api", Target: shop, Name: "shop"},
	}
	for url, expected := range map[string]string{
		"https://shop.localhost/api":   "shop",
		"https://shop.localhost/":      "",
		"https://other.localhost/docs": "below",
		"https://a.b.localhost/docs":   "every",
		"https://localhost/docs":       "every",
		"https://127.0.0.1:8443/docs":  "every",
		"https://a.b.localhost/":       "",
	} {
		if found := ask(routes, url).Header().Get("X-Backend"); found != expected {
			t.Errorf("%s: %q", url, found)
		}
	}
}

// A request comes as it was sent, with the host that was asked for, and with what a proxy adds.
func TestWhatABackendSees(t *testing.T) {
	routes := []route{{Host: "shop.localhost", Path: "/", Target: backend(t, "web"), Name: "web"}}
	got := ask(routes, "https://shop.localhost:8443/a%2Fb?c=d&e").Body.String()
	want := "GET /a%2Fb?c=d&e host=shop.localhost:8443 proto=https forwarded=shop.localhost:8443 for=192.0.2.1"
	if got != want {
		t.Fatalf("%s\n%s", got, want)
	}
}

// The parameters of a request are the backend's to read: Go would leave out those that it can't parse itself.
func TestTheParametersOfARequestStay(t *testing.T) {
	routes := []route{{Host: "shop.localhost", Path: "/", Target: backend(t, "web"), Name: "web"}}
	for _, query := range []string{"a=1;b=2&c=3", "rate=100%", "q=%zz&page=2", "a+b", "x=%C3%BC;"} {
		got := ask(routes, "https://shop.localhost/search?"+query).Body.String()
		if !strings.HasPrefix(got, "GET /search?"+query+" host=") {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// A client can't say of itself that it came another way.
func TestWhatAClientSaysIsNotBelieved(t *testing.T) {
	routes := []route{{Host: "shop.localhost", Path: "/", Target: backend(t, "web"), Name: "web"}}
	request := httptest.NewRequest("GET", "https://shop.localhost/", nil)
	request.Header.Set("X-Forwarded-For", "10.0.0.1")
	request.Header.Set("X-Forwarded-Proto", "http")
	request.Header.Set("X-Forwarded-Host", "else.localhost")
	response := httptest.NewRecorder()
	handleRequest(response, request, routes)
	want := "proto=https forwarded=shop.localhost for=192.0.2.1"
	if !strings.HasSuffix(response.Body.String(), want) {
		t.Fatal(response.Body)
	}
}

// What a backend says piece by piece is handed on so, as events are.
func TestPiecesAreHandedOn(t *testing.T) {
	said := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "one\n")
		w.(http.Flusher).Flush()
		<-said
	}))
	defer server.Close()
	routes := []route{{Host: "127.0.0.1", Path: "/", Target: strings.TrimPrefix(server.URL, "http://"), Name: "web"}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handleRequest(w, r, routes) }))
	defer front.Close()
	defer close(said)
	response, err := http.Get(front.URL)
	check(t, err)
	defer response.Body.Close()
	piece := make([]byte, 4)
	if _, err := io.ReadFull(response.Body, piece); err != nil || string(piece) != "one\n" {
		t.Fatalf("%q, %v", piece, err)
	}
}

// Plain HTTP leads to HTTPS, with the path and the query, at the port that machines see.
func TestPlainLeadsToSecure(t *testing.T) {
	for _, row := range [][3]string{
		{"443", "http://shop.localhost/a?b=c", "https://shop.localhost/a?b=c"},
		{"443", "http://shop.localhost:8080/", "https://shop.localhost/"},
		{"443", "http://[::1]:8080/a", "https://[::1]/a"},
		{"443", "http://[::1]/a", "https://[::1]/a"},
		{"443", "http://shop.localhost/a%2Fb/c", "https://shop.localhost/a%2Fb/c"},
		{"8443", "http://shop.localhost:8080/a?b=c", "https://shop.localhost:8443/a?b=c"},
		{"8443", "http://[::1]:8080/a", "https://[::1]:8443/a"},
	} {
		port, asked, led := row[0], row[1], row[2]
		response := httptest.NewRecorder()
		redirectToHTTPS(port)(response, httptest.NewRequest("GET", asked, nil))
		if response.Code != http.StatusPermanentRedirect || response.Header().Get("Location") != led {
			t.Errorf("%s: %d %s", asked, response.Code, response.Header().Get("Location"))
		}
	}
}

// Routes are read when the file comes and when it changes; what is half written changes nothing.
func TestRoutesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes.json")
	var routes atomic.Pointer[[]route]
	routes.Store(&[]route{})
	go watch(path, &routes)
	moment := time.Now()
	put := func(text string) {
		t.Helper()
		moment = moment.Add(time.Second)
		write(t, path+".new", []byte(text))
		check(t, os.Chtimes(path+".new", moment, moment))
		check(t, os.Rename(path+".new", path))
	}
	hosts := func() (found string) {
		for _, one := range *routes.Load() {
			found += one.Host + " "
		}
		return found
	}
	until := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); hosts() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q, not %q", hosts(), want)
			}
		}
	}
	put(`[{"host": "a", "path": "/", "target": "x", "name": "web"}]`)
	until("a ")
	put(`[{"host": "b"`)
	time.Sleep(250 * time.Millisecond)
	until("a ")
	put(`[{"host": "b"}, {"host": "c"}]`)
	until("b c ")
	check(t, os.Remove(path))
	time.Sleep(250 * time.Millisecond)
	until("b c ")
}

// fullListener listens, and answers no connection until its queue is emptied: a kernel drops the first packets then, as a node
// does for an address without a pod.
func fullListener(t *testing.T) (net.Listener, string) {
	t.Helper()
	descriptor, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(descriptor, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(descriptor, 0); err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(descriptor), "listener")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	waiting, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { waiting.Close() })
	return listener, listener.Addr().String()
}

// A connection without an answer is tried again, and the request arrives once there is one.
func TestATargetThatAnswersLater(t *testing.T) {
	listener, address := fullListener(t)
	go func() {
		time.Sleep(300 * time.Millisecond)
		listener.Accept()
		http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	}()
	client := http.Client{Transport: newTransport(100*time.Millisecond, 20)}
	began := time.Now()
	response, err := client.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	// The kernel itself repeats a first packet after 1 s.
	if text, _ := io.ReadAll(response.Body); string(text) != "here" || time.Since(began) > 900*time.Millisecond {
		t.Errorf("%q after %v", text, time.Since(began))
	}
}

// Where no answer comes, the request fails after the last try; a refused connection fails at once.
func TestATargetThatNeverAnswers(t *testing.T) {
	_, address := fullListener(t)
	client := http.Client{Transport: newTransport(50*time.Millisecond, 3)}
	began := time.Now()
	if _, err := client.Get("http://" + address); err == nil || time.Since(began) < 150*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	client = http.Client{Transport: newTransport(time.Minute, 3)}
	if _, err := client.Get("http://" + closed.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}
