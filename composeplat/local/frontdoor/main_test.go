package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// frontdoor is a process of this program.
func frontdoor(t *testing.T, args ...string) (process *exec.Cmd, stderr func() string) {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	process = exec.Command(program, args...)
	process.Env = append(os.Environ(), "AS_FRONTDOOR=1")
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	check(t, err)
	defer said.Close()
	process.Stderr = said
	check(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	return process, func() string {
		text, err := os.ReadFile(said.Name())
		check(t, err)
		return string(text)
	}
}

// freeAddress is an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestWrongArgumentsPrintTheUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"unknown"}, {"pipe"}, {"pipe", "tcp:127.0.0.1:0"}, {"pipe", "a", "b", "c"}, {"ingress", "folder", "a", "b"},
		{"builder", "folder", "1000", "none"}, {"builder-inside", "folder", "none"},
	} {
		process, stderr := frontdoor(t, args...)
		var ended *exec.ExitError
		if err := process.Wait(); !errors.As(err, &ended) || ended.ExitCode() != 2 || !strings.HasPrefix(stderr(), "usage: frontdoor pipe") {
			t.Errorf("%q: %v, %s", args, err, stderr())
		}
	}
}

func TestWhatCanNotBeServedIsSaid(t *testing.T) {
	folder := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(folder, "socket", "inner"), 0o700))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer taken.Close()
	for message, args := range map[string][]string{
		"can't listen on tcp:" + taken.Addr().String() + ": ": {"pipe", "tcp:" + taken.Addr().String(), "tcp:x"},
		"can't remove the socket " + folder + "/socket: ":     {"pipe", "unix:" + folder + "/socket", "tcp:x"},
		"not a user: root": {"pipe", "own+root:127.0.0.1:0", "tcp:x"},
		"can't read the certificate authority: open " + folder + "/ca": {"ingress", folder, "127.0.0.1:0", "127.0.0.1:0", "443"},
	} {
		process, stderr := frontdoor(t, args...)
		var ended *exec.ExitError
		if err := process.Wait(); !errors.As(err, &ended) || ended.ExitCode() != 1 || !strings.HasPrefix(stderr(), message) {
			t.Errorf("%q: %v, %s", args, err, stderr())
		}
	}
}

// Each FROM has a TO of its own, and the first ones are not only those that are served.
func TestSeveralPipes(t *testing.T) {
	first, second := freeAddress(t), freeAddress(t)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	for path, name := range map[string]string{one: "one", two: "two"} {
		listener, err := net.Listen("unix", path)
		check(t, err)
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				io.WriteString(connection, name)
				connection.Close()
			}
		}()
	}
	frontdoor(t, "pipe", "tcp:"+first, "unix:"+one, "own:"+second, "unix:"+two)
	for address, want := range map[string]string{first: "one", second: "two"} {
		eventually(t, want+" answers", func() bool {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				return false
			}
			defer connection.Close()
			received, err := io.ReadAll(connection)
			return err == nil && string(received) == want
		})
	}
}

const nobody = 65534

// askAs is what a process of a user hears at an address.
func askAs(t *testing.T, user uint32, address string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	check(t, err)
	script := fmt.Sprintf("exec 3<>/dev/tcp/%s/%s && cat <&3", host, port)
	command := exec.Command("bash", "-c", script)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: nobody}}
	received, _ := command.Output()
	return string(received)
}

func TestOtherUsersAreTurnedAway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to connect as another user")
	}
	path := filepath.Join(t.TempDir(), "inside")
	listener, err := net.Listen("unix", path)
	check(t, err)
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(connection, "inside")
			connection.Close()
		}
	}()
	owners, builders := freeAddress(t), freeAddress(t)
	frontdoor(t, "pipe", "own:"+owners, "unix:"+path, fmt.Sprintf("own+%d:%s", nobody, builders), "unix:"+path)
	eventually(t, "root gets in", func() bool { return askAs(t, 0, owners) == "inside" && askAs(t, 0, builders) == "inside" })
	if received := askAs(t, nobody, owners); received != "" {
		t.Errorf("another user receives %q", received)
	}
	if received := askAs(t, nobody, builders); received != "inside" {
		t.Errorf("the builder's user receives %q", received)
	}
	if received := askAs(t, nobody-1, builders); received != "" {
		t.Errorf("a user beside it receives %q", received)
	}
	// Who is turned away does not keep others out.
	if received := askAs(t, 0, owners); received != "inside" {
		t.Errorf("root receives %q", received)
	}
}

// visitor is a client that trusts the authority, and finds every host at the address.
func visitor(pool *x509.CertPool, address string) *http.Client {
	dialer := &net.Dialer{Timeout: time.Second}
	return &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool},
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, address)
			},
		},
	}
}

func TestTheIngressServesRoutesOverHTTPS(t *testing.T) {
	folder := t.TempDir()
	pool := authority(t, folder)
	secure, plain := freeAddress(t), freeAddress(t)
	web, api := backend(t, "web"), backend(t, "api")
	routes := filepath.Join(folder, "routes.json")
	_, stderr := frontdoor(t, "ingress", folder, secure, plain, "443")
	client := visitor(pool, secure)
	answers := func() (status int, from string) {
		response, err := client.Get("https://shop.localhost/")
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		return response.StatusCode, response.Header.Get("X-Backend")
	}
	becomes := func(status int, from string) {
		t.Helper()
		eventually(t, fmt.Sprint(status, " from ", from), func() bool {
			gotStatus, gotFrom := answers()
			return gotStatus == status && gotFrom == from
		})
	}
	becomes(404, "")
	write(t, routes, []byte(`[{"host": "shop.localhost", "path": "/", "target": "`+web+`", "name": "web"}]`))
	becomes(200, "web")
	// A file that is written half, or is none, changes nothing.
	write(t, routes, []byte(`[{"host": "shop.loc`))
	time.Sleep(300 * time.Millisecond)
	becomes(200, "web")
	write(t, routes, []byte(`[{"host": "shop.localhost", "path": "/", "target": "`+api+`", "name": "api"}]`))
	becomes(200, "api")
	check(t, os.Remove(routes))
	becomes(200, "api")
	response, err := (&http.Client{
		Transport:     visitor(pool, plain).Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).Get("http://shop.localhost/a?b=c")
	check(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusPermanentRedirect || response.Header.Get("Location") != "https://shop.localhost/a?b=c" {
		t.Errorf("%d to %s", response.StatusCode, response.Header.Get("Location"))
	}
	if _, err := tls.Dial("tcp", secure, &tls.Config{RootCAs: pool, ServerName: "shop.localhost", MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if !strings.Contains(stderr(), "can't read routes: unexpected end of JSON input") {
		t.Errorf("nothing is said of the half file: %s", stderr())
	}
}
