// Package machine is this machine's end of `platform up` and `platform exec`. It owns finding the container, keeping a link
// to its agent, deciding what each side of a sync gets, forwarding ports, and showing the session's terminal.
//
// It must not know Compose: the configuration file says everything it needs, so that it can be tested without a cluster.
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"

	"composeplat/link/internal/tree"
)

// Config is the configuration file of `platform-link up`.
type Config struct {
	Kubeconfig   string            `json:"kubeconfig"`
	Context      string            `json:"context"`
	Namespace    string            `json:"namespace"`
	Selector     string            `json:"selector"`
	Container    string            `json:"container"`
	Agent        string            `json:"agent"`
	Socket       string            `json:"socket"`
	AgentCommand []string          `json:"agent_command"`
	State        string            `json:"state"`
	Folders      []FolderConfig    `json:"folders"`
	Forwards     []ForwardConfig   `json:"forwards"`
	Reverse      []ReverseConfig   `json:"reverse"`
	Command      []string          `json:"command"`
	Directory    string            `json:"directory"`
	Environment  map[string]string `json:"environment"`
	Terminal     bool              `json:"terminal"`
}

type FolderConfig struct {
	Local  string `json:"local"`
	Remote string `json:"remote"`
	// Within is the folder below which no symbolic link in Local is followed; if empty, the whole path is trusted.
	Within  string   `json:"within"`
	Ignores []string `json:"ignores"`
	File    bool     `json:"file"`
	// OneWay means that changes of the container are undone.
	OneWay bool `json:"one_way"`
}

type ForwardConfig struct {
	Listen string `json:"listen"`
	Port   int    `json:"port"`
}

type ReverseConfig struct {
	Port int    `json:"port"`
	To   string `json:"to"`
}

// ReadConfig reads and validates the file.
func ReadConfig(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config Config
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &config, config.check()
}

func (c *Config) check() error {
	if !filepath.IsAbs(c.State) {
		return errors.New("state must be an absolute path")
	}
	if len(c.AgentCommand) == 0 && (c.Agent == "" || c.Socket == "" || c.Selector == "") {
		return errors.New("agent, socket and selector are needed")
	}
	for _, folder := range c.Folders {
		if !filepath.IsAbs(folder.Local) || !path.IsAbs(folder.Remote) {
			return fmt.Errorf("%s and %s must be absolute paths", folder.Local, folder.Remote)
		}
		if _, err := tree.NewIgnorer(folder.Ignores); err != nil {
			return fmt.Errorf("%s: %w", folder.Local, err)
		}
	}
	for _, forward := range c.Forwards {
		if _, _, err := net.SplitHostPort(forward.Listen); err != nil {
			return err
		}
	}
	return nil
}
