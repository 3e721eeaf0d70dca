package main

import (
	"net/netip"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// insecureRegistries are those that may have no TLS, or certificates that nobody checks: those that Docker's settings name.
type insecureRegistries struct {
	hosts  map[string]bool
	ranges []netip.Prefix
}

func parseInsecure(entries []string) insecureRegistries {
	found := insecureRegistries{hosts: map[string]bool{}}
	for _, entry := range entries {
		if addresses, err := netip.ParsePrefix(entry); err == nil {
			found.ranges = append(found.ranges, addresses.Masked())
			continue
		}
		found.hosts[strings.ToLower(entry)] = true
	}
	return found
}

// has reports whether a registry, with or without a port, is one of them. Names are not resolved: who answers for a name
// could make it insecure.
func (i insecureRegistries) has(registry string) bool {
	if i.hosts[strings.ToLower(registry)] {
		return true
	}
	address, err := netip.ParseAddr(hostOf(registry))
	if err != nil {
		return false
	}
	for _, addresses := range i.ranges {
		if addresses.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}

// mayBePlain reports whether a host may be asked by plain HTTP: one of them, this machine, or a private address. The library
// takes every name with 127.0.0.1 or ::1 in it for this machine.
func (i insecureRegistries) mayBePlain(host string) bool {
	name := hostOf(host)
	if i.has(host) || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && (address.IsLoopback() || address.IsPrivate())
}

func (i insecureRegistries) options(registry string) []name.Option {
	if i.has(registry) {
		return []name.Option{name.Insecure}
	}
	return nil
}

// hostOf returns a registry without its port; an address of IPv6 without its brackets.
func hostOf(registry string) string {
	if inner, bracketed := strings.CutPrefix(registry, "["); bracketed {
		host, _, _ := strings.Cut(inner, "]")
		return host
	}
	host, _, _ := strings.Cut(registry, ":")
	return host
}
