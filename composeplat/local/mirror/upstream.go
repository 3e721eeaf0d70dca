package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

const (
	connectTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second
	// clientLife is how long a login is used without asking Docker's configuration again.
	clientLife = time.Minute
)

// upstreams knows the clients of registries: each has the login and the token for a repository.
type upstreams struct {
	transport http.RoundTripper
	keychain  authn.Keychain
	insecure  insecureRegistries
	lock      sync.Mutex
	clients   map[string]*registryClient
}

// A registryClient is a client of one repository.
type registryClient struct {
	client http.Client
	scheme string
	made   time.Time
}

func newUpstreams(certificates string, insecure insecureRegistries) *upstreams {
	hosts := &hostTransport{folder: certificates, insecure: insecure, known: map[string]*http.Transport{}}
	return &upstreams{
		transport: transport.NewUserAgent(hosts, "platform"),
		keychain:  authn.DefaultKeychain,
		insecure:  insecure,
		clients:   map[string]*registryClient{},
	}
}

// registry returns a client that is logged in, and has a token if the registry wants one.
func (u *upstreams) registry(ctx context.Context, query wanted) (*registryClient, error) {
	key := query.repository.Name() + loginKey(query.login)
	u.lock.Lock()
	found := u.clients[key]
	u.lock.Unlock()
	if found != nil && time.Since(found.made) < clientLife {
		return found, nil
	}
	login := query.login
	if login == nil {
		stored, err := authn.Resolve(ctx, u.keychain, query.repository)
		if err != nil {
			return nil, problem{http.StatusBadGateway, fmt.Sprintf("the Docker configuration has no usable login for %s: %v",
				registryName(query.repository), err)}
		}
		login = stored
	}
	// The token is used after this request too.
	shared := context.WithoutCancel(ctx)
	authenticated, err := transport.NewWithContext(shared, query.repository.Registry, login, u.transport,
		[]string{query.repository.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	made := &registryClient{client: http.Client{Transport: authenticated}, scheme: query.repository.Registry.Scheme(), made: time.Now()}
	u.lock.Lock()
	u.clients[key] = made
	u.lock.Unlock()
	return made, nil
}

// loginKey distinguishes the clients of one repository, without keeping a password in a map.
func loginKey(login authn.Authenticator) string {
	basic, ok := login.(*authn.Basic)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" %x", sha256.Sum256([]byte(basic.Username+"\x00"+basic.Password)))
}

// get asks for a manifest or a blob; a blob from an offset on, though a registry may answer with all of it.
func (r *registryClient) get(ctx context.Context, query wanted, offset int64) (*http.Response, error) {
	response, err := r.do(ctx, http.MethodGet, query, offset)
	if err != nil {
		return nil, err
	}
	if err := transport.CheckError(response, http.StatusOK, http.StatusPartialContent); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// digestOf returns the digest of a manifest without asking for its content; empty if the registry does not say it.
func (r *registryClient) digestOf(ctx context.Context, query wanted) string {
	response, err := r.do(ctx, http.MethodHead, query, 0)
	if err != nil {
		return ""
	}
	response.Body.Close()
	digest := response.Header.Get("Docker-Content-Digest")
	if response.StatusCode != http.StatusOK || !isDigest(digest) {
		return ""
	}
	return digest
}

func (r *registryClient) do(ctx context.Context, method string, query wanted, offset int64) (*http.Response, error) {
	kind := "manifests"
	if query.isBlob {
		kind = "blobs"
	}
	address := fmt.Sprintf("%s://%s/v2/%s/%s/%s", r.scheme, query.repository.RegistryStr(), query.repository.RepositoryStr(),
		kind, query.reference)
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	for _, accepted := range query.accept {
		request.Header.Add("Accept", accepted)
	}
	if query.isBlob {
		// Else the content would come unpacked if a server packs it on the way.
		request.Header.Set("Accept-Encoding", "identity")
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	return r.client.Do(request)
}

// certificates --------------------------------------------------------------------------------------------------------

// hostTransport sends each request with the certificates that are meant for its host, through the proxy of the environment.
type hostTransport struct {
	folder   string
	insecure insecureRegistries
	lock     sync.Mutex
	known    map[string]*http.Transport
}

func (h *hostTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == "http" && !h.insecure.mayBePlain(request.URL.Host) {
		return nil, fmt.Errorf("plain HTTP, which only insecure-registries of Docker's daemon.json allows for %s", request.URL.Host)
	}
	found, err := h.transport(request.URL.Host)
	if err != nil {
		return nil, err
	}
	return found.RoundTrip(request)
}

func (h *hostTransport) transport(host string) (*http.Transport, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if found := h.known[host]; found != nil {
		return found, nil
	}
	settings, err := trust(h.folder, host)
	if err != nil {
		return nil, err
	}
	settings.InsecureSkipVerify = h.insecure.has(host)
	made := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSClientConfig:       settings,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       time.Minute,
	}
	h.known[host] = made
	return made, nil
}

// trust reads the authorities of this machine, and Docker's files for a host: NAME.crt is an authority, NAME.cert with
// NAME.key a certificate to show.
func trust(folder, host string) (*tls.Config, error) {
	authorities, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	place := filepath.Join(folder, filepath.Base(host))
	for _, path := range listFiles(place, ".crt") {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !authorities.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("no certificate in %s", path)
		}
	}
	for _, path := range listFiles(place, ".cert") {
		pair, err := tls.LoadX509KeyPair(path, strings.TrimSuffix(path, ".cert")+".key")
		if err != nil {
			return nil, err
		}
		settings.Certificates = append(settings.Certificates, pair)
	}
	return settings, nil
}

func listFiles(folder, ending string) []string {
	found, _ := filepath.Glob(filepath.Join(folder, "*"+ending))
	return found
}

// isDigest reports whether a reference is a digest that this mirror can check.
func isDigest(reference string) bool {
	digest, found := strings.CutPrefix(reference, "sha256:")
	if !found || len(digest) != 2*sha256.Size {
		return false
	}
	return strings.Trim(digest, "0123456789abcdef") == ""
}
