package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// A route forwards requests for a host and path to an address. Routes with longer paths come first.
type route struct {
	Host   string `json:"host"`
	Path   string `json:"path"`
	Target string `json:"target"`
	Name   string `json:"name"`
}

// serveIngress serves the routes in the folder's routes.json over HTTPS, and reads the file again when it changes. HTTP requests
// are redirected to the port at which HTTPS is reached on this machine.
func serveIngress(folder, secure, plain, port string) {
	issuer, err := newIssuer(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key"))
	if err != nil {
		log.Fatalf("can't read the certificate authority: %v", err)
	}
	var routes atomic.Pointer[[]route]
	routes.Store(&[]route{})
	go watch(filepath.Join(folder, "routes.json"), &routes)
	go func() {
		log.Fatal(http.ListenAndServe(plain, redirectToHTTPS(port)))
	}()
	server := &http.Server{
		Addr:              secure,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handleRequest(w, r, *routes.Load()) }),
		ReadHeaderTimeout: 30 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: issuer.certificate},
	}
	log.Fatal(server.ListenAndServeTLS("", ""))
}

func watch(path string, routes *atomic.Pointer[[]route]) {
	var seen time.Time
	for ; ; time.Sleep(100 * time.Millisecond) {
		state, err := os.Stat(path)
		if err != nil || state.ModTime().Equal(seen) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var read []route
		if err := json.Unmarshal(text, &read); err != nil {
			log.Printf("can't read routes: %v", err)
			continue
		}
		seen = state.ModTime()
		routes.Store(&read)
	}
}

func redirectToHTTPS(port string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host := net.JoinHostPort(strings.Trim(hostname(r), "[]"), port)
		if port == "443" {
			host = strings.TrimSuffix(host, ":443")
		}
		http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusPermanentRedirect)
	}
}

func hostname(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		return r.Host
	}
	return host
}

func handleRequest(w http.ResponseWriter, r *http.Request, routes []route) {
	host := strings.ToLower(hostname(r))
	_, above, _ := strings.Cut(host, ".")
	// A host of its own goes before all hosts below a name, and these before a route for all hosts.
	for _, pattern := range []string{host, "*." + above, ""} {
		known := false
		for _, candidate := range routes {
			if candidate.Host != pattern {
				continue
			}
			known = true
			if matchesPrefix(candidate.Path, r.URL.Path) {
				forward(w, r, candidate)
				return
			}
		}
		if known {
			http.Error(w, "no route for this path", http.StatusNotFound)
			return
		}
	}
	http.Error(w, "no endpoint has this host", http.StatusNotFound)
}

// matchesPrefix reports whether a path is below a Prefix path: /a and /a/b are below /a, /ab is not.
func matchesPrefix(prefix, path string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func forward(w http.ResponseWriter, r *http.Request, to route) {
	if to.Target == "" {
		http.Error(w, to.Name+" has no ready pod yet", http.StatusServiceUnavailable)
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport: toPods,
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(&url.URL{Scheme: "http", Host: to.Target})
			// Parameters that Go can't parse have been left out.
			request.Out.URL.RawQuery = request.In.URL.RawQuery
			request.SetXForwarded()
			request.Out.Host = request.In.Host
			request.Out.Header.Set("X-Forwarded-Proto", "https")
		},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, to.Name+" does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}

// toPods connects to Services and pods.
var toPods = newTransport(2*time.Second, 5)

// newTransport returns the default transport, but for connections that get no answer in time: those are tried again. The first
// packet of a connection decides where the node sends all of them; one that leaves before kube-proxy knows a new pod never
// arrives, however often it is repeated.
func newTransport(timeout time.Duration, tries int) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	dialer := net.Dialer{Timeout: timeout}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		for left := tries; ; left-- {
			connection, err := dialer.DialContext(ctx, network, address)
			var failure net.Error
			isLate := errors.As(err, &failure) && failure.Timeout() && ctx.Err() == nil
			if !isLate || left <= 1 {
				return connection, err
			}
		}
	}
	return transport
}
