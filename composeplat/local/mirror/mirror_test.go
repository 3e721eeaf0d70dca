package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A fakeRegistry serves some content under the path /v2/shop/app/, and records what it was asked for.
type fakeRegistry struct {
	*httptest.Server
	lock     sync.Mutex
	content  map[string][]byte
	requests []string
	// gate answers instead of the content, and then returns true.
	gate func(w http.ResponseWriter, r *http.Request) bool
}

const image = "/v2/shop/app/"

func newRegistry(t *testing.T) *fakeRegistry {
	t.Helper()
	made := &fakeRegistry{content: map[string][]byte{}, gate: func(http.ResponseWriter, *http.Request) bool { return false }}
	made.Server = httptest.NewTLSServer(made)
	t.Cleanup(made.Close)
	return made
}

func (f *fakeRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.lock.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	f.lock.Unlock()
	if f.gate(w, r) || r.URL.Path == "/v2/" {
		return
	}
	found, ok := f.content[strings.TrimPrefix(r.URL.Path, image)]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Docker-Content-Digest", digestOf(found))
	w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(found)))
}

func (f *fakeRegistry) host() string { return strings.TrimPrefix(f.URL, "https://") }

// push puts a blob and a manifest into the registry, and returns the digest of the blob.
func (f *fakeRegistry) push(blob []byte) string {
	digest := digestOf(blob)
	content := []byte(fmt.Sprintf(`{"layers":[{"digest":%q}]}`, digest))
	f.content["blobs/"+digest] = blob
	f.content["manifests/1"], f.content["manifests/"+digestOf(content)] = content, content
	return digest
}

func (f *fakeRegistry) asked(request string) int {
	f.lock.Lock()
	defer f.lock.Unlock()
	count := 0
	for _, found := range f.requests {
		if found == request {
			count++
		}
	}
	return count
}

// authorityOf writes what Docker would have of a registry: a folder with its authority.
func authorityOf(t *testing.T, hosts ...*httptest.Server) string {
	t.Helper()
	folder := t.TempDir()
	for _, server := range hosts {
		place := filepath.Join(folder, strings.TrimPrefix(server.URL, "https://"))
		os.MkdirAll(place, 0o700)
		content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		os.WriteFile(filepath.Join(place, "ca.crt"), content, 0o600)
	}
	return folder
}

// A node asks the mirror as containerd does.
type node struct {
	*httptest.Server
	mirror   *mirror
	registry string
	login    [2]string
}

func newNode(t *testing.T, registry *fakeRegistry, others ...*httptest.Server) *node {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DOCKER_CONFIG", "")
	store, err := openCache(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	made := newMirror(store, newUpstreams(authorityOf(t, append(others, registry.Server)...), insecureRegistries{}))
	served := httptest.NewServer(made)
	t.Cleanup(served.Close)
	return &node{Server: served, mirror: made, registry: registry.host()}
}

func (n *node) get(path string, headers ...string) (*http.Response, []byte) {
	request, _ := http.NewRequest(http.MethodGet, n.URL+image+path+"?ns="+url.QueryEscape(n.registry), nil)
	for _, header := range headers {
		key, value, _ := strings.Cut(header, ": ")
		request.Header.Set(key, value)
	}
	if n.login[0] != "" {
		request.SetBasicAuth(n.login[0], n.login[1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return &http.Response{Status: err.Error()}, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return &http.Response{Status: err.Error()}, content
	}
	return response, content
}

func (n *node) want(t *testing.T, path, content string) {
	t.Helper()
	response, found := n.get(path)
	if response.StatusCode != http.StatusOK || string(found) != content {
		t.Fatalf("%s: %s %q", path, response.Status, found)
	}
}

func (n *node) wantStatus(t *testing.T, path, status string) {
	t.Helper()
	if response, _ := n.get(path); response.Status != status {
		t.Fatalf("%s: %s", path, response.Status)
	}
}

func TestARegistryWithItsOwnAuthority(t *testing.T) {
	registry := newRegistry(t)
	digest := registry.push([]byte("layer"))
	node := newNode(t, registry)

	node.want(t, "manifests/1", string(registry.content["manifests/1"]))
	node.want(t, "blobs/"+digest, "layer")

	unknown := newNode(t, registry)
	unknown.registry = "example.com"
	unknown.mirror.upstreams.transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", registry.host())
	}}
	unknown.wantStatus(t, "manifests/1",
		"502 example.com can't be reached: tls: failed to verify certificate: x509: certificate signed by unknown authority")
}

func TestTheCacheIsAskedFirst(t *testing.T) {
	registry := newRegistry(t)
	digest := registry.push([]byte("layer"))
	node := newNode(t, registry)

	for range 3 {
		node.want(t, "manifests/1", string(registry.content["manifests/1"]))
		node.want(t, "manifests/"+digestOf(registry.content["manifests/1"]), string(registry.content["manifests/1"]))
		node.want(t, "blobs/"+digest, "layer")
	}
	if got := registry.asked("GET " + image + "manifests/1"); got != 1 {
		t.Errorf("the manifest was fetched %d times", got)
	}
	if got := registry.asked("GET " + image + "blobs/" + digest); got != 1 {
		t.Errorf("the layer was fetched %d times", got)
	}
	if response, content := node.get("blobs/"+digest, "Range: bytes=2-"); response.StatusCode != 206 || string(content) != "yer" {
		t.Errorf("%s %q", response.Status, content)
	}
}

func TestATagHasItsLastKnownManifestWithoutTheRegistry(t *testing.T) {
	registry := newRegistry(t)
	registry.push([]byte("layer"))
	node := newNode(t, registry)
	before := string(registry.content["manifests/1"])
	node.want(t, "manifests/1", before)

	registry.push([]byte("newer"))
	node.want(t, "manifests/1", string(registry.content["manifests/1"]))
	last := string(registry.content["manifests/1"])
	registry.gate = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	node.want(t, "manifests/1", last)
	registry.Close()
	node.want(t, "manifests/1", last)
	if response, _ := node.get("manifests/2"); response.StatusCode != http.StatusBadGateway {
		t.Errorf("an unknown tag: %s", response.Status)
	}
}

func TestWhoMayNotPullGetsNothingFromTheCache(t *testing.T) {
	registry := newRegistry(t)
	registry.push([]byte("layer"))
	node := newNode(t, registry)
	node.want(t, "manifests/1", string(registry.content["manifests/1"]))

	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	node.wantStatus(t, "manifests/1", "403 "+registry.host()+" denied access: forbidden")
}

func TestAnIndexOfSeveralPlatforms(t *testing.T) {
	registry := newRegistry(t)
	registry.push([]byte("layer"))
	amd64 := registry.content["manifests/1"]
	index := []byte(fmt.Sprintf(`{"mediaType":%q,"manifests":[{"digest":%q,"platform":{"architecture":"amd64","os":"linux"}},`+
		`{"digest":%q,"platform":{"architecture":"arm64","os":"linux"}}]}`, types.OCIImageIndex, digestOf(amd64), digestOf([]byte("x"))))
	registry.content["manifests/1"] = index
	node := newNode(t, registry)

	node.want(t, "manifests/1", string(index))
	node.want(t, "manifests/"+digestOf(amd64), string(amd64))
	if registry.asked("GET "+image+"manifests/"+digestOf([]byte("x"))) != 0 {
		t.Error("another platform was fetched")
	}
}

func TestARedirectKeepsTheLogin(t *testing.T) {
	registry, storage := newRegistry(t), newRegistry(t)
	digest := registry.push([]byte("layer"))
	var shown string
	storage.gate = func(w http.ResponseWriter, r *http.Request) bool {
		shown = r.Header.Get("Authorization")
		io.WriteString(w, "layer")
		return true
	}
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		if !wantsLogin(w, r, "me", "secret") && strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, storage.URL+"/elsewhere", http.StatusTemporaryRedirect)
			return true
		}
		return r.Header.Get("Authorization") == ""
	}
	node := newNode(t, registry, storage.Server)
	node.login = [2]string{"me", "secret"}

	node.want(t, "blobs/"+digest, "layer")
	if shown != "" {
		t.Errorf("the login was sent to another host: %s", shown)
	}
}

// wantsLogin answers with a challenge, unless a request has the login.
func wantsLogin(w http.ResponseWriter, r *http.Request, user, password string) bool {
	if gotUser, gotPassword, _ := r.BasicAuth(); gotUser == user && gotPassword == password {
		return false
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

func TestTheLoginsOfDocker(t *testing.T) {
	registry := newRegistry(t)
	registry.push([]byte("layer"))
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool { return wantsLogin(w, r, "me", "secret") }
	node := newNode(t, registry)
	node.wantStatus(t, "manifests/1", "401 "+registry.host()+" denied access: unauthorized")

	configure(t, map[string]any{"auths": map[string]any{registry.host(): map[string]string{"auth": encode("me:secret")}}})
	node.mirror.upstreams.clients = map[string]*registryClient{}
	node.want(t, "manifests/1", string(registry.content["manifests/1"]))
}

func TestACredentialHelper(t *testing.T) {
	registry := newRegistry(t)
	registry.push([]byte("layer"))
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool { return wantsLogin(w, r, "me", "secret") }
	node := newNode(t, registry)
	configure(t, map[string]any{"credHelpers": map[string]string{registry.host(): "of-tests"}})
	response, _ := node.get("manifests/1")
	if !strings.Contains(response.Status, "no usable login") || !strings.Contains(response.Status, "docker-credential-of-tests") {
		t.Errorf("a missing helper: %s", response.Status)
	}

	folder := t.TempDir()
	helper := "#!/bin/sh\necho '{\"Username\": \"me\", \"Secret\": \"secret\"}'\n"
	os.WriteFile(filepath.Join(folder, "docker-credential-of-tests"), []byte(helper), 0o700)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	node.want(t, "manifests/1", string(registry.content["manifests/1"]))
}

func TestAPullSecret(t *testing.T) {
	registry := newRegistry(t)
	registry.push([]byte("layer"))
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool { return wantsLogin(w, r, "pods", "own") }
	node := newNode(t, registry)
	response, _ := node.get("manifests/1")
	if response.StatusCode != 401 || response.Header.Get("WWW-Authenticate") != `Basic realm="mirror"` {
		t.Errorf("the node is not asked for its login: %s", response.Status)
	}

	node.login = [2]string{"pods", "wrong"}
	node.wantStatus(t, "manifests/1", "403 "+registry.host()+" denied access: unauthorized")
	node.login = [2]string{"pods", "own"}
	node.want(t, "manifests/1", string(registry.content["manifests/1"]))
}

func TestATokenServer(t *testing.T) {
	registry, tokens := newRegistry(t), newRegistry(t)
	digest := registry.push([]byte("layer"))
	var scope, service string
	given := 0
	tokens.gate = func(w http.ResponseWriter, r *http.Request) bool {
		if !wantsLogin(w, r, "me", "secret") {
			given++
			scope, service = r.URL.Query().Get("scope"), r.URL.Query().Get("service")
			json.NewEncoder(w).Encode(map[string]any{"token": fmt.Sprintf("t%d", given)})
		}
		return true
	}
	valid := "Bearer t1"
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == valid {
			return false
		}
		realm := strings.Replace(tokens.URL, "127.0.0.1", "localhost", 1)
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="shop"`, realm))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	node := newNode(t, registry)
	node.mirror.upstreams.transport = trustAll{}
	configure(t, map[string]any{"auths": map[string]any{registry.host(): map[string]string{"auth": encode("me:secret")}}})

	node.want(t, "manifests/1", string(registry.content["manifests/1"]))
	valid = "Bearer t2"
	node.want(t, "blobs/"+digest, "layer")
	if scope != "repository:shop/app:pull" || service != "shop" {
		t.Errorf("scope %q, service %q", scope, service)
	}
}

// trustAll is for servers whose certificate has another name.
type trustAll struct{}

func (trustAll) RoundTrip(r *http.Request) (*http.Response, error) {
	return (&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}).RoundTrip(r)
}

func TestARateLimitIsNamed(t *testing.T) {
	registry := newRegistry(t)
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached\r\nyour pull rate limit."}]}`)
		return true
	}
	node := newNode(t, registry)

	node.wantStatus(t, "manifests/1",
		"503 the rate limit of "+registry.host()+" is reached: You have reached  your pull rate limit.")
}

func TestABrokenTransferIsContinued(t *testing.T) {
	for name, ranges := range map[string]bool{"with ranges": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			retryPause = time.Millisecond
			registry := newRegistry(t)
			blob := strings.Repeat("0123456789", 50_000)
			digest := registry.push([]byte(blob))
			var offsets []string
			registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}
				offsets = append(offsets, r.Header.Get("Range"))
				cut := 200_000
				if !ranges {
					r.Header.Del("Range")
					cut *= len(offsets)
				}
				if len(offsets) < 3 {
					w = &cutWriter{w, cut}
				}
				registry.lock.Lock()
				content := registry.content["blobs/"+digest]
				registry.lock.Unlock()
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(content)))
				return true
			}
			node := newNode(t, registry)

			node.want(t, "blobs/"+digest, blob)
			if len(offsets) != 3 || offsets[0] != "" || !strings.HasPrefix(offsets[1], "bytes=") {
				t.Errorf("asked for %q", offsets)
			}
		})
	}
}

// What a registry without ranges sends again may take longer than it may be silent.
func TestAContinuedTransferMayBeSlow(t *testing.T) {
	retryPause, stallTimeout = time.Millisecond, 300*time.Millisecond
	t.Cleanup(func() { stallTimeout = 30 * time.Second })
	registry := newRegistry(t)
	blob := strings.Repeat("0123456789", 10_000)
	digest := registry.push([]byte(blob))
	requests := 0
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(blob)))
		if requests++; requests == 1 {
			w = &cutWriter{w, 80_000}
			w.Write([]byte(blob))
		}
		for sent := 0; sent < len(blob); sent += 10_000 {
			time.Sleep(80 * time.Millisecond)
			w.Write([]byte(blob[sent : sent+10_000]))
			w.(http.Flusher).Flush()
		}
		return true
	}
	node := newNode(t, registry)

	if response, found := node.get("blobs/" + digest); string(found) != blob || requests != 2 {
		t.Errorf("asked %d times: %s, %d bytes", requests, response.Status, len(found))
	}
}

// A cutWriter breaks the connection off after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(content []byte) (int, error) {
	if len(content) > c.left {
		c.ResponseWriter.Write(content[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(content)
	return c.ResponseWriter.Write(content)
}

func TestATransferThatStaysBrokenEnds(t *testing.T) {
	retryPause = time.Millisecond
	registry := newRegistry(t)
	digest := registry.push([]byte(strings.Repeat("x", 1000)))
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		return false
	}
	node := newNode(t, registry)

	if response, _ := node.get("blobs/" + digest); !strings.HasSuffix(response.Status, "EOF") {
		t.Errorf("got %s", response.Status)
	}
	if got := registry.asked("GET " + image + "blobs/" + digest); got != maxFailures+1 {
		t.Errorf("asked %d times", got)
	}
}

func TestWhatAKilledMirrorLeftIsContinued(t *testing.T) {
	registry := newRegistry(t)
	digest := registry.push([]byte("0123456789"))
	node := newNode(t, registry)
	var asked string
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		asked = r.Header.Get("Range")
		return false
	}
	os.WriteFile(node.mirror.cache.path(partial, digest), []byte("0123"), 0o600)

	node.want(t, "blobs/"+digest, "0123456789")
	if asked != "bytes=4-" {
		t.Errorf("asked for %q", asked)
	}

	other := registry.push([]byte("complete"))
	os.WriteFile(node.mirror.cache.path(partial, other), []byte("complete"), 0o600)
	registry.Close()
	node.want(t, "blobs/"+other, "complete")
}

func TestWrongContentIsNotKept(t *testing.T) {
	registry := newRegistry(t)
	digest := digestOf([]byte("right"))
	registry.content["blobs/"+digest] = []byte("wrong")
	registry.content["manifests/"+digest] = []byte("wrong")
	node := newNode(t, registry)

	node.get("blobs/" + digest)
	if entries := append(list(filepath.Join(node.mirror.cache.folder, blobs)), list(filepath.Join(node.mirror.cache.folder, partial))...); len(entries) != 0 {
		t.Errorf("kept: %v", entries)
	}
	node.wantStatus(t, "manifests/"+digest, "502 the manifest does not match its digest")
}

func TestAProxy(t *testing.T) {
	registry := newRegistry(t)
	registry.push([]byte("layer"))
	var asked, shown string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, shown = r.Method+" "+r.Host, r.Header.Get("Proxy-Authorization")
		far, err := net.Dial("tcp", registry.host())
		if err != nil {
			t.Error(err)
			return
		}
		near, _, _ := w.(http.Hijacker).Hijack()
		io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(far, near)
		io.Copy(near, far)
	}))
	t.Cleanup(proxy.Close)
	address, _ := url.Parse(proxy.URL)
	address.User = url.UserPassword("who", "pass")
	node := newNode(t, registry)
	// The name is the proxy's to resolve; the certificate of the test server is valid for it.
	node.registry = "registry.example.com"
	authorities := x509.NewCertPool()
	authorities.AddCert(registry.Certificate())
	node.mirror.upstreams.transport = &http.Transport{
		Proxy: http.ProxyURL(address), TLSClientConfig: &tls.Config{RootCAs: authorities, ServerName: "example.com"},
	}

	node.want(t, "manifests/1", string(registry.content["manifests/1"]))
	if asked != "CONNECT registry.example.com:443" || shown != "Basic "+encode("who:pass") {
		t.Errorf("%s, %s", asked, shown)
	}
}

func TestTheCacheHasALimit(t *testing.T) {
	registry := newRegistry(t)
	node := newNode(t, registry)
	node.mirror.cache.limit = 2500
	var digests []string
	for _, letter := range []string{"a", "b", "c"} {
		digest := registry.push([]byte(strings.Repeat(letter, 1000)))
		node.want(t, "blobs/"+digest, strings.Repeat(letter, 1000))
		past := time.Now().Add(time.Duration(len(digests)-10) * time.Minute)
		// The node has the last byte before the file is in its place.
		for os.Chtimes(node.mirror.cache.path(blobs, digest), past, past) != nil {
			time.Sleep(time.Millisecond)
		}
		digests = append(digests, digest)
	}
	node.mirror.cache.trim()

	for number, digest := range digests {
		_, err := os.Stat(node.mirror.cache.path(blobs, digest))
		if kept := err == nil; kept != (number > 0) {
			t.Errorf("%d kept: %v", number, kept)
		}
	}
}

func TestManyRequestsMakeOneDownload(t *testing.T) {
	registry := newRegistry(t)
	blob := strings.Repeat("0123456789", 100_000)
	digest := registry.push([]byte(blob))
	node := newNode(t, registry)

	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { node.want(t, "blobs/"+digest, blob) })
	}
	group.Wait()
	if got := registry.asked("GET " + image + "blobs/" + digest); got != 1 {
		t.Errorf("downloaded %d times", got)
	}
}

// It had the error of the other request, and its pull failed.
func TestADownloadThatIsDeniedToAnotherLoginIsStartedAgain(t *testing.T) {
	registry := newRegistry(t)
	digest := registry.push([]byte("layer"))
	without := newNode(t, registry)
	with := &node{Server: without.Server, mirror: without.mirror, registry: without.registry, login: [2]string{"pods", "own"}}
	usedBy := func(users int) func() bool {
		return func() bool {
			without.mirror.downloads.lock.Lock()
			defer without.mirror.downloads.lock.Unlock()
			found := without.mirror.downloads.running[digest]
			return found != nil && found.users >= users
		}
	}
	registry.gate = func(w http.ResponseWriter, r *http.Request) bool {
		if _, _, hasLogin := r.BasicAuth(); !hasLogin && strings.Contains(r.URL.Path, "/blobs/") {
			await(t, usedBy(3))
		}
		return wantsLogin(w, r, "pods", "own")
	}
	var group sync.WaitGroup
	group.Go(func() {
		if response, _ := without.get("blobs/" + digest); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a login: %s", response.Status)
		}
	})
	await(t, usedBy(2))
	with.want(t, "blobs/"+digest, "layer")
	group.Wait()
	await(t, func() bool {
		without.mirror.downloads.lock.Lock()
		defer without.mirror.downloads.lock.Unlock()
		return len(without.mirror.downloads.running) == 0
	})
}

func await(t *testing.T, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it takes too long")
}

func TestOtherRequestsAreRefused(t *testing.T) {
	node := newNode(t, newRegistry(t))
	for path, status := range map[string]string{
		"tags/list":                 "404 this mirror serves manifests and blobs only",
		"blobs/latest":              "400 neither a tag nor a digest of SHA-256: latest",
		"manifests/sha256:..%2F..":  "404 this mirror serves manifests and blobs only",
		"manifests/" + "sha512:abc": "400 neither a tag nor a digest of SHA-256: sha512:abc",
	} {
		node.wantStatus(t, path, status)
	}
	response, err := http.Post(node.URL+image+"blobs/uploads/?ns=x.example", "", nil)
	if err != nil || response.Status != "405 images can only be pulled here" {
		t.Errorf("a push: %v %v", response, err)
	}
	response, _ = http.Get(node.URL + "/v2/")
	if response.StatusCode != http.StatusOK {
		t.Errorf("a ping: %s", response.Status)
	}
}

func TestOnlyItsUserMayConnect(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "mirror.sock")
	os.WriteFile(socket, nil, 0o600)
	go serve(socket, http.NotFoundHandler())
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	for range 100 {
		if response, err := client.Get("http://mirror/"); err == nil {
			response.Body.Close()
			info, _ := os.Stat(socket)
			if response.StatusCode != http.StatusNotFound || info.Mode().Perm() != 0o600 {
				t.Errorf("%s, mode %v", response.Status, info.Mode())
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("nothing listens")
}

func configure(t *testing.T, config map[string]any) {
	t.Helper()
	folder := t.TempDir()
	content, _ := json.Marshal(config)
	os.WriteFile(filepath.Join(folder, "config.json"), content, 0o600)
	t.Setenv("DOCKER_CONFIG", folder)
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
