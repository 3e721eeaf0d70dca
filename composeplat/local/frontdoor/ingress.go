package main

import (
	"crypto/tls"
	"encoding/json"
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

// A route leads requests for a host and path to an address; routes come with longer paths first.
type route struct {
	Host   string `json:"host"`
	Path   string `json:"path"`
	Target string `json:"target"`
	Name   string `json:"name"`
}

// serve answers HTTPS for the routes in the folder's routes.json, which is read again when it changes; HTTP is sent there.
func serve(folder, secure, plain string) {
	issuer, err := newIssuer(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key"))
	if err != nil {
		log.Fatalf("can't read the authority: %v", err)
	}
	var routes atomic.Pointer[[]route]
	routes.Store(&[]route{})
	go watch(filepath.Join(folder, "routes.json"), &routes)
	go func() {
		log.Fatal(http.ListenAndServe(plain, http.HandlerFunc(toSecure)))
	}()
	server := &http.Server{
		Addr:              secure,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, *routes.Load()) }),
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

func toSecure(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://"+hostname(r)+r.URL.RequestURI(), http.StatusPermanentRedirect)
}

func hostname(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		return r.Host
	}
	return host
}

func answer(w http.ResponseWriter, r *http.Request, routes []route) {
	host := strings.ToLower(hostname(r))
	known := false
	for _, one := range routes {
		if one.Host != host {
			continue
		}
		known = true
		if covers(one.Path, r.URL.Path) {
			forward(w, r, one)
			return
		}
	}
	if known {
		http.Error(w, "no route for this path", http.StatusNotFound)
	} else {
		http.Error(w, "no endpoint has this host", http.StatusNotFound)
	}
}

// covers says whether a Prefix path holds a request's: /a covers /a and /a/b, not /ab.
func covers(prefix, path string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func forward(w http.ResponseWriter, r *http.Request, one route) {
	if one.Target == "" {
		http.Error(w, one.Name+" has nothing that answers yet", http.StatusServiceUnavailable)
		return
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(&url.URL{Scheme: "http", Host: one.Target})
			request.SetXForwarded()
			request.Out.Host = request.In.Host
			request.Out.Header.Set("X-Forwarded-Proto", "https")
		},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, one.Name+" does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}
