// Command mirror pulls images from any registry for the node of the local cluster, which has no network that leads outside.
// It owns the way to the registries (proxies, certificates, logins) and the cache of pulled images.
//
// It must not know Kubernetes. It is a program of its own, on the machine's network, so that no login reaches the node.
//
//	mirror SOCKET FOLDER LIMIT CERTIFICATES [INSECURE]...
//
// serves the protocol of registries on a socket. FOLDER is the cache, of at most LIMIT bytes. CERTIFICATES has a folder for each
// registry, as Docker's certs.d. INSECURE is a registry, or a range of addresses, without TLS or with certificates of nobody.
//
// Its environment has the proxies and the path of the Docker configuration, like that of docker.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	log.SetFlags(log.LstdFlags | log.LUTC)
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: mirror SOCKET FOLDER LIMIT CERTIFICATES [INSECURE]...")
		os.Exit(2)
	}
	limit, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil || limit < 0 {
		log.Fatalf("not a size: %s", os.Args[3])
	}
	store, err := openCache(os.Args[2], limit)
	if err != nil {
		log.Fatalf("can't use the cache: %v", err)
	}
	log.Fatal(serve(os.Args[1], newMirror(store, newUpstreams(os.Args[4], parseInsecure(os.Args[5:])))))
}

// serve listens on a socket that only this user can connect to.
func serve(socket string, handler http.Handler) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	server := http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}
