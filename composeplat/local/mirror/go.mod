module composeplat/mirror

go 1.26

require github.com/google/go-containerregistry v0.21.6

require (
	github.com/docker/cli v29.4.3+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	golang.org/x/sys v0.44.0 // indirect
	gotest.tools/v3 v3.5.2 // indirect
)
