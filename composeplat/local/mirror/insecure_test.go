package main

import (
	"net"
	"net/http/httptest"
	"net/url"
	"testing"
)

func TestWhichRegistriesAreInsecure(t *testing.T) {
	insecure := parseInsecure([]string{"Plain.example.com:5000", "192.0.2.0/24", "[2001:db8::1]:5000", "2001:db8:1::/48"})
	for registry, want := range map[string]bool{
		"plain.example.com:5000": true, "plain.example.com": false, "other.example.com": false,
		"192.0.2.7": true, "192.0.2.7:5000": true, "192.0.3.7": false,
		"[2001:db8::1]:5000": true, "[2001:db8::1]": false, "[2001:db8:1::9]:5000": true, "[2001:db8:2::9]": false,
	} {
		if got := insecure.has(registry); got != want {
			t.Errorf("%s: %v", registry, got)
		}
		request := httptest.NewRequest("GET", image+"manifests/1?ns="+url.QueryEscape(registry), nil)
		query, err := parseWanted(request, insecure)
		if err != nil || (want && query.repository.Scheme() != "http") {
			t.Errorf("%s: %v, %v", registry, query.repository.Scheme(), err)
		}
	}
}

func TestWhoMayBeAskedByPlainHTTP(t *testing.T) {
	insecure := parseInsecure([]string{"plain.example.com:5000"})
	for host, want := range map[string]bool{
		"plain.example.com:5000": true, "localhost:5000": true, "registry.localhost": true, "127.0.0.1:5000": true,
		"[::1]:5000": true, "10.1.2.3": true, "192.168.0.1:80": true, "[fd00::1]:5000": true,
		"registry.example.com": false, "127.0.0.1.example.com": false, "[2001:db8::1]:5000": false, "8.8.8.8": false,
	} {
		if got := insecure.mayBePlain(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	request := httptest.NewRequest("GET", "http://[2001:db8::1]/v2/", nil)
	if _, err := (&hostTransport{insecure: insecure}).RoundTrip(request); err == nil {
		t.Error("an address with ::1 in it was asked by plain HTTP")
	}
}

func TestACertificateOfNobodyWhereItMayBe(t *testing.T) {
	registry := newRegistry(t)
	blob := []byte("layer")
	digest := registry.push(blob)
	node := newNode(t, registry)
	node.mirror.upstreams = newUpstreams(t.TempDir(), insecureRegistries{})
	if response, _ := node.get("manifests/1"); response.StatusCode != 502 {
		t.Errorf("an unknown authority: %s", response.Status)
	}

	node.mirror.upstreams = newUpstreams(t.TempDir(), parseInsecure([]string{registry.host()}))

	node.want(t, "blobs/"+digest, string(blob))
}

func TestARegistryOfIPv6(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	registry := newRegistry(t)
	plain := httptest.Server{Listener: listener, Config: registry.Config}
	plain.Start()
	defer plain.Close()
	blob := []byte("layer")
	digest := registry.push(blob)
	node := newNode(t, registry)
	node.registry = listener.Addr().String()

	node.want(t, "blobs/"+digest, string(blob))
	if response, _ := node.get("manifests/1"); response.StatusCode != 200 {
		t.Errorf("a manifest: %s", response.Status)
	}
}
