package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority writes a certificate authority into a folder, and gives the pool of those who trust it.
func authority(t *testing.T, folder string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	check(t, err)
	write(t, filepath.Join(folder, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	write(t, filepath.Join(folder, "ca.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
	pool := x509.NewCertPool()
	certificate, err := x509.ParseCertificate(signed)
	check(t, err)
	pool.AddCert(certificate)
	return pool
}

func issuerIn(t *testing.T) (*issuer, *x509.CertPool) {
	t.Helper()
	folder := t.TempDir()
	pool := authority(t, folder)
	made, err := newIssuer(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key"))
	check(t, err)
	return made, pool
}

func (i *issuer) asked(t *testing.T, host string) *tls.Certificate {
	t.Helper()
	made, err := i.certificate(&tls.ClientHelloInfo{ServerName: host})
	check(t, err)
	return made
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	check(t, os.WriteFile(path, text, 0o600))
}

// A certificate is for the host that is asked for and no other, and whoever trusts the authority trusts it.
func TestACertificateIsForItsHost(t *testing.T) {
	made, pool := issuerIn(t)
	for asked, host := range map[string]string{"web.localhost": "web.localhost", "": "localhost"} {
		leaf := made.asked(t, asked).Leaf
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool}); err != nil {
			t.Errorf("%q: %v", asked, err)
		}
		if leaf.VerifyHostname("other.localhost") == nil {
			t.Errorf("%q is trusted for another host", asked)
		}
		if leaf.IsCA || leaf.NotAfter.Before(time.Now().Add(80*24*time.Hour)) {
			t.Errorf("%q: an authority: %v, until %v", asked, leaf.IsCA, leaf.NotAfter)
		}
	}
}

// The chain that is sent has the authority in it.
func TestTheChain(t *testing.T) {
	made, _ := issuerIn(t)
	chain := made.asked(t, "web.localhost").Certificate
	if len(chain) != 2 || string(chain[1]) != string(made.authority.Raw) {
		t.Fatalf("%d certificates", len(chain))
	}
}

// A host's certificate is made once, and anew before it ends.
func TestACertificateIsMadeOnce(t *testing.T) {
	made, _ := issuerIn(t)
	first := made.asked(t, "web.localhost")
	if made.asked(t, "web.localhost") != first {
		t.Error("made again")
	}
	first.Leaf.NotAfter = time.Now().Add(30 * time.Minute)
	if made.asked(t, "web.localhost") == first {
		t.Error("kept though it is about to end")
	}
}

// However many hosts are asked for, the memory does not fill.
func TestCertificatesAreForgotten(t *testing.T) {
	made, _ := issuerIn(t)
	kept := made.asked(t, "a.localhost")
	for len(made.issued) < maxCertificates {
		made.issued[time.Now().String()+string(rune(len(made.issued)))] = kept
	}
	made.asked(t, "b.localhost")
	if len(made.issued) != 1 {
		t.Fatalf("%d are kept", len(made.issued))
	}
}

// An authority that can't be read is an error.
func TestNoAuthority(t *testing.T) {
	folder := t.TempDir()
	authority(t, folder)
	if _, err := newIssuer(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "absent.key")); err == nil {
		t.Error("an absent key is none")
	}
	write(t, filepath.Join(folder, "ca.crt"), []byte("no certificate"))
	if _, err := newIssuer(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key")); err == nil {
		t.Error("what is no certificate is none")
	}
}
