// Command generate-sdk writes the SDK of a schema: generate-sdk LANGUAGE SCHEMA FOLDER.
//
// "pulumi package gen-sdk" calls the same generators through the language plugins of Pulumi's releases.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: generate-sdk go|nodejs SCHEMA FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(language, schemaPath, folder string) error {
	content, err := os.ReadFile(schemaPath)
	if err != nil {
		return err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(content, &spec); err != nil {
		return err
	}
	bound, diagnostics, err := schema.BindSpec(spec, noPackages{}, schema.ValidationOptions{})
	if err != nil {
		return err
	}
	if len(diagnostics) > 0 {
		return diagnostics
	}
	files, err := generate(language, bound)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// noPackages loads none: the schema refers to no type of another package.
type noPackages struct{ schema.ReferenceLoader }

func generate(language string, bound *schema.Package) (map[string][]byte, error) {
	switch language {
	case "go":
		return gogen.GeneratePackage("pulumi", bound, nil)
	case "nodejs":
		return nodejs.GeneratePackage("pulumi", bound, nil, nil, false, noPackages{})
	default:
		return nil, fmt.Errorf("no SDK is made for %q", language)
	}
}
