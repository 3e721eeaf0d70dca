package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/rest"
)

// maxUpgrade is how long a server may take to begin a command, as its admission may ask webhooks: without a limit, one that
// is silent would be waited for without end. A command that runs has the limit of the client library, which is the same:
// signs of life are sent every 5 s.
const maxUpgrade = time.Minute

// withBoundedUpgrades returns a configuration whose upgrades of connections end after maxUpgrade.
func withBoundedUpgrades(client *rest.Config) *rest.Config {
	bounded := rest.CopyConfig(client)
	bounded.Wrap(func(inner http.RoundTripper) http.RoundTripper { return boundedUpgrade{inner} })
	return bounded
}

type boundedUpgrade struct{ inner http.RoundTripper }

func (b boundedUpgrade) RoundTrip(request *http.Request) (*http.Response, error) {
	// An upgraded connection does not end with the context.
	ctx, cancel := context.WithTimeout(request.Context(), maxUpgrade)
	defer cancel()
	return b.inner.RoundTrip(request.WithContext(ctx))
}

// explainLoss returns a reason of its own where the connection of a command is lost.
func explainLoss(err error) error {
	var silent interface{ Timeout() bool }
	if errors.As(err, &silent) && silent.Timeout() {
		return errors.New("the connection to the cluster is lost: nothing was received for a minute")
	}
	var closed *websocket.CloseError
	var failed *net.OpError
	switch {
	case errors.As(err, &closed) && closed.Code == websocket.CloseAbnormalClosure, errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection to the cluster is lost: it was closed")
	case errors.As(err, &failed) && failed.Op != "dial":
		return fmt.Errorf("the connection to the cluster is lost: %w", failed.Err)
	}
	return err
}
