// Command pulumi-resource-kubernetes is the Pulumi Kubernetes provider, built from its module.
// The module is a library with a server; only code generators ask it for a schema, so it is given an empty one.
package main

import (
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

func main() {
	schema := []byte(`{"name":"kubernetes"}`)
	provider.Serve("kubernetes", version.Version, schema, []byte("{}"))
}
