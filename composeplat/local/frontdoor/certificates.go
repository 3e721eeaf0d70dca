package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// An issuer issues a certificate for each requested host: a wildcard is not valid directly below localhost.
type issuer struct {
	authority *x509.Certificate
	key       crypto.PrivateKey
	lock      sync.Mutex
	issued    map[string]*tls.Certificate
}

const maxCertificates = 1000

func newIssuer(certificate, key string) (*issuer, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	authority, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	return &issuer{authority: authority, key: pair.PrivateKey, issued: map[string]*tls.Certificate{}}, nil
}

func (i *issuer) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := hello.ServerName
	if host == "" {
		host = "localhost"
	}
	i.lock.Lock()
	defer i.lock.Unlock()
	if known := i.issued[host]; known != nil && time.Now().Before(known.Leaf.NotAfter.Add(-time.Hour)) {
		return known, nil
	}
	if len(i.issued) >= maxCertificates {
		i.issued = map[string]*tls.Certificate{}
	}
	issued, err := i.issue(host)
	if err != nil {
		return nil, fmt.Errorf("can't issue a certificate for %s: %w", host, err)
	}
	i.issued[host] = issued
	return issued, nil
}

func (i *issuer) issue(host string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "local cluster endpoint"},
		DNSNames:     []string{host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(90 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, i.authority, &key.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(signed)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{signed, i.authority.Raw}, PrivateKey: key, Leaf: leaf}, nil
}
