package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// A mirror answers the node's requests from the cache, and from the registry that a request names.
type mirror struct {
	cache     *cache
	upstreams *upstreams
	downloads *downloads
}

func newMirror(store *cache, upstreams *upstreams) *mirror {
	return &mirror{cache: store, upstreams: upstreams, downloads: newDownloads(store)}
}

// A wanted is what a request asks for.
type wanted struct {
	repository name.Repository
	isBlob     bool
	reference  string // a tag or a digest
	accept     []string
	login      authn.Authenticator // of a pull secret; nil means the logins of this machine
}

func (q wanted) hasDigest() bool { return isDigest(q.reference) }

// String names the image as people do.
func (q wanted) String() string {
	separator := ":"
	if q.hasDigest() {
		separator = "@"
	}
	return registryName(q.repository) + "/" + q.repository.RepositoryStr() + separator + q.reference
}

func registryName(repository name.Repository) string {
	if found := repository.RegistryStr(); found != name.DefaultRegistry {
		return found
	}
	return "docker.io"
}

var wantedPath = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs)/([^/]+)$`)

// parseWanted reads a request of containerd or of the builder, which name the registry in the parameter ns.
func parseWanted(r *http.Request, insecure insecureRegistries) (wanted, error) {
	parts := wantedPath.FindStringSubmatch(r.URL.Path)
	registry := r.URL.Query().Get("ns")
	if parts == nil || registry == "" {
		return wanted{}, problem{http.StatusNotFound, "this mirror serves manifests and blobs only"}
	}
	repository, err := name.NewRepository(registry+"/"+parts[1], insecure.options(registry)...)
	if err != nil {
		return wanted{}, problem{http.StatusBadRequest, err.Error()}
	}
	found := wanted{repository: repository, isBlob: parts[2] == "blobs", reference: parts[3], accept: r.Header["Accept"]}
	if _, err := name.NewTag(repository.Name() + ":" + found.reference); !found.hasDigest() && (found.isBlob || err != nil) {
		return wanted{}, problem{http.StatusBadRequest, "neither a tag nor a digest of SHA-256: " + found.reference}
	}
	if user, password, ok := r.BasicAuth(); ok {
		found.login = &authn.Basic{Username: user, Password: password}
	}
	return found, nil
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, r, problem{http.StatusMethodNotAllowed, "images can only be pulled here"})
		return
	}
	if r.URL.Path == "/v2/" {
		return
	}
	query, err := parseWanted(r, m.upstreams.insecure)
	if err == nil {
		err = m.answer(w, r, query)
	}
	if err == nil {
		return
	}
	found := asProblem(err, query)
	log.Printf("%s: %d %s", query, found.status, found.message)
	refuse(w, r, found)
}

func (m *mirror) answer(w http.ResponseWriter, r *http.Request, query wanted) error {
	if query.isBlob {
		return m.answerBlob(w, r, query)
	}
	found, err := m.manifest(r.Context(), query)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", found.mediaType)
	w.Header().Set("Docker-Content-Digest", found.digest)
	w.Header().Set("Content-Length", strconv.Itoa(len(found.content)))
	w.Write(found.content)
	return nil
}

// manifests -----------------------------------------------------------------------------------------------------------

// manifest returns what a digest names from the cache, if it is there. A tag is looked up in its registry each time; if the
// registry can't be asked, the tag has its last known manifest.
func (m *mirror) manifest(ctx context.Context, query wanted) (manifest, error) {
	if query.hasDigest() {
		if found, ok := m.cache.manifest(query.reference); ok {
			return found, nil
		}
	}
	found, err := m.fetchManifest(ctx, query)
	if err != nil {
		if known, ok := m.lastKnown(query, err); ok {
			log.Printf("%s: %s; the cached manifest is used", query, asProblem(err, query).message)
			return known, nil
		}
		return manifest{}, err
	}
	if !query.hasDigest() {
		m.cache.rememberTag(query.String(), found.digest)
	}
	return found, nil
}

// lastKnown returns the cached manifest of a tag, where an error does not say that the image may not be pulled.
func (m *mirror) lastKnown(query wanted, err error) (manifest, bool) {
	if query.hasDigest() || !asProblem(err, query).isTemporary() {
		return manifest{}, false
	}
	return m.cache.manifest(m.cache.digestOf(query.String()))
}

func (m *mirror) fetchManifest(ctx context.Context, query wanted) (manifest, error) {
	registry, err := m.upstreams.registry(ctx, query)
	if err != nil {
		return manifest{}, err
	}
	// Docker Hub counts no HEAD requests towards its rate limit.
	if digest := registry.digestOf(ctx, query); digest != "" {
		if found, ok := m.cache.manifest(digest); ok {
			return found, nil
		}
	}
	response, err := registry.get(ctx, query, 0)
	if err != nil {
		return manifest{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxManifest+1))
	if err != nil {
		return manifest{}, err
	}
	if len(content) > maxManifest {
		return manifest{}, problem{http.StatusBadGateway, "the manifest is too large"}
	}
	found := manifest{digest: digestOf(content), mediaType: response.Header.Get("Content-Type"), content: content}
	if query.hasDigest() && found.digest != query.reference {
		return manifest{}, problem{http.StatusBadGateway, "the manifest does not match its digest"}
	}
	m.cache.storeManifest(found)
	return found, nil
}

const maxManifest = 8 << 20

// blobs ---------------------------------------------------------------------------------------------------------------

func (m *mirror) answerBlob(w http.ResponseWriter, r *http.Request, query wanted) error {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", query.reference)
	if file, info, ok := m.cache.blob(query.reference); ok {
		defer file.Close()
		http.ServeContent(w, r, "", info.ModTime(), file)
		return nil
	}
	running, size, err := m.beginDownload(query)
	if err != nil {
		return err
	}
	defer m.downloads.leave(running)
	offset := writeRange(w, r, size)
	if r.Method == http.MethodHead {
		return nil
	}
	if err := running.copyTo(w, offset); err != nil {
		log.Printf("%s: %v", query, err)
		// The status was sent: the node notices the end of the connection, and asks for the rest.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// beginDownload joins the download of a blob. One that another request has started and that does not begin says nothing about
// this one: that had another login, or asked another registry.
func (m *mirror) beginDownload(query wanted) (*download, int64, error) {
	for {
		running, isOwn := m.downloads.join(query.reference, func(ctx context.Context, offset int64) (*http.Response, error) {
			registry, err := m.upstreams.registry(ctx, query)
			if err != nil {
				return nil, err
			}
			return registry.get(ctx, query, offset)
		})
		size, err := running.waitUntilBegun()
		if err == nil {
			return running, size, nil
		}
		m.downloads.leave(running)
		if isOwn {
			return nil, 0, err
		}
	}
}

// writeRange writes the headers of a blob that is being downloaded, and returns where the answer begins.
func writeRange(w http.ResponseWriter, r *http.Request, size int64) int64 {
	var offset int64
	if size >= 0 {
		first, _ := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
		if number, err := strconv.ParseInt(strings.TrimSuffix(first, "-"), 10, 64); err == nil && 0 < number && number < size {
			offset = number
		}
		w.Header().Set("Content-Length", strconv.FormatInt(size-offset, 10))
	}
	if offset > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, size-1, size))
		w.WriteHeader(http.StatusPartialContent)
	}
	return offset
}

// problems ------------------------------------------------------------------------------------------------------------

// asProblem gives an error a status, and a message that names the registry.
func asProblem(err error, query wanted) problem {
	var found problem
	if errors.As(err, &found) {
		return found
	}
	return describe(err, registryName(query.repository))
}
