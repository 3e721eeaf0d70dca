// Command ignorefile says which paths BuildKit's own library leaves out of a context, for each ignore file on a line of JSON.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

type question struct {
	Text  string   `json:"text"`
	Paths []string `json:"paths"`
}

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked question
		err := questions.Decode(&asked)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		ignored, err := answer(asked)
		if err != nil {
			ignored = nil
		}
		if err := answers.Encode(ignored); err != nil {
			log.Fatal(err)
		}
	}
}

// answer says of each path whether it is left out; an error means that a build with such a file fails.
func answer(asked question) ([]bool, error) {
	patterns, err := ignorefile.ReadAll(strings.NewReader(asked.Text))
	if err != nil {
		return nil, err
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, err
	}
	ignored := make([]bool, len(asked.Paths))
	for number, path := range asked.Paths {
		var above patternmatcher.MatchInfo
		steps := strings.Split(path, "/")
		for count := range steps {
			below := strings.Join(steps[:count+1], "/")
			if ignored[number], above, err = matcher.MatchesUsingParentResults(below, above); err != nil {
				return nil, err
			}
		}
	}
	return ignored, nil
}
