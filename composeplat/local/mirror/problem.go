package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// A problem is an error with the status that the node gets.
type problem struct {
	status  int
	message string
}

func (p problem) Error() string { return p.message }

// isTemporary reports whether the registry could not be asked, which says nothing about the image.
func (p problem) isTemporary() bool { return p.status >= http.StatusInternalServerError }

// describe gives an error of a registry a status and a message.
func describe(err error, registry string) problem {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return problem{http.StatusBadGateway, fmt.Sprintf("%s can't be reached: %s", registry, cause(err))}
	}
	message := serverMessage(answer)
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return problem{answer.StatusCode, fmt.Sprintf("%s denied access: %s", registry, message)}
	case http.StatusNotFound:
		return problem{http.StatusNotFound, fmt.Sprintf("not found in %s: %s", registry, message)}
	case http.StatusTooManyRequests:
		// The node would repeat a request with status 429 at once.
		return problem{http.StatusServiceUnavailable, fmt.Sprintf("the rate limit of %s is reached: %s", registry, message)}
	}
	return problem{http.StatusBadGateway, fmt.Sprintf("%s responded with status %d: %s", registry, answer.StatusCode, message)}
}

func serverMessage(answer *transport.Error) string {
	for _, found := range answer.Errors {
		if found.Message != "" {
			return found.Message
		}
	}
	return strings.ToLower(http.StatusText(answer.StatusCode))
}

// cause leaves out the request: the image is named beside the message.
func cause(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	return err.Error()
}

// maxReason keeps a registry from filling the node's events.
const maxReason = 300

// refuse writes a problem. The node shows the reason of a status line, but not the body of an answer to HEAD, so the message
// is the reason; net/http has no way to write one.
func refuse(w http.ResponseWriter, r *http.Request, p problem) {
	body, _ := json.Marshal(map[string]any{"errors": []map[string]string{{"code": "MIRROR", "message": p.message}}})
	challenge := ""
	if _, _, hasLogin := r.BasicAuth(); p.status == http.StatusUnauthorized {
		challenge = "WWW-Authenticate: Basic realm=\"mirror\"\r\n"
		if hasLogin {
			// The login of a pull secret was refused: the node has no other.
			p.status, challenge = http.StatusForbidden, ""
		}
	}
	connection, stream, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, p.message, p.status)
		return
	}
	defer connection.Close()
	fmt.Fprintf(stream, "HTTP/1.1 %d %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		p.status, reason(p.message), challenge, len(body))
	if r.Method != http.MethodHead {
		stream.Write(body)
	}
	stream.Flush()
}

// reason makes a message fit for a status line.
func reason(message string) string {
	line := strings.Map(func(letter rune) rune {
		if letter > unicode.MaxASCII || !unicode.IsPrint(letter) {
			return ' '
		}
		return letter
	}, message)
	return line[:min(len(line), maxReason)]
}
