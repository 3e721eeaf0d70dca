package machine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

const pingPeriod = 5 * time.Second

// statusProtocols always send the status of a command; without one, its connection is lost.
var statusProtocols = []string{"v4.channel.k8s.io", "v5.channel.k8s.io"}

// A spdyExecutor runs a command by SPDY. That of the client library waits for the answer to a ping without end, and takes a
// connection that is lost for a command that has succeeded.
type spdyExecutor struct {
	client *rest.Config
	url    *url.URL
}

func (e *spdyExecutor) Stream(options remotecommand.StreamOptions) error {
	return e.StreamWithContext(context.Background(), options)
}

func (e *spdyExecutor) StreamWithContext(ctx context.Context, options remotecommand.StreamOptions) error {
	security, err := rest.TLSConfigFor(e.client)
	if err != nil {
		return err
	}
	proxy := http.ProxyFromEnvironment
	if e.client.Proxy != nil {
		proxy = e.client.Proxy
	}
	transport := &http.Transport{Proxy: proxy, TLSClientConfig: security, DialContext: e.client.Dial}
	used := &spdyUse{inner: transport}
	wrapped, err := rest.HTTPWrappersForConfig(e.client, used)
	if err != nil {
		return err
	}
	run, err := remotecommand.NewSPDYExecutorForTransports(wrapped, used, http.MethodPost, e.url)
	if err != nil {
		return err
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: used.setSystem})
	err = run.StreamWithContext(ctx, options)
	if loss := used.loss(); loss != nil && (err == nil || errors.Is(loss, os.ErrDeadlineExceeded)) {
		return loss
	}
	return err
}

// spdyUse is the use of a connection for one command: whether its status has come, and why nothing comes any more.
type spdyUse struct {
	inner     http.RoundTripper
	lock      sync.Mutex
	system    net.Conn
	carrier   io.ReadWriteCloser
	hasBegun  bool
	hasStatus bool
	failure   error
}

// RoundTrip requests SPDY.
func (u *spdyUse) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	request.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	answer, err := u.inner.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		return answer, err
	}
	u.lock.Lock()
	defer u.lock.Unlock()
	// The client library closes the body before the connection is used.
	u.carrier, _ = answer.Body.(io.ReadWriteCloser)
	answer.Body = http.NoBody
	return answer, nil
}

func (u *spdyUse) setSystem(got httptrace.GotConnInfo) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.system = got.Conn
}

// NewConnection takes a connection over, once the server has agreed.
func (u *spdyUse) NewConnection(answer *http.Response) (httpstream.Connection, error) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.carrier == nil {
		refused, err := spdy.NewRoundTripper(nil)
		if err != nil {
			return nil, err
		}
		return refused.NewConnection(answer)
	}
	u.hasBegun = slices.Contains(statusProtocols, answer.Header.Get(httpstream.HeaderProtocolVersion))
	connection, err := spdy.NewClientConnectionWithPings(&spdyCarrier{u.system, u.carrier, u}, pingPeriod)
	if err != nil {
		return nil, err
	}
	return &spdyConnection{connection, u}, nil
}

func (u *spdyUse) fail(err error) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.failure == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		u.failure = err
	}
}

func (u *spdyUse) setStatus() {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.hasStatus = true
}

// loss returns why the connection was lost, if it was.
func (u *spdyUse) loss() error {
	u.lock.Lock()
	defer u.lock.Unlock()
	switch {
	case !u.hasBegun || u.hasStatus:
		return nil
	case u.failure != nil:
		return u.failure
	}
	return io.ErrUnexpectedEOF
}

// A spdyCarrier is the connection below SPDY: it fails where nothing is received for maxSilence, or nothing can be sent.
type spdyCarrier struct {
	net.Conn
	carrier io.ReadWriteCloser
	used    *spdyUse
}

func (c *spdyCarrier) Read(into []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(maxSilence))
	length, err := c.carrier.Read(into)
	c.used.fail(err)
	return length, err
}

func (c *spdyCarrier) Write(from []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(maxSilence))
	length, err := c.carrier.Write(from)
	c.used.fail(err)
	return length, err
}

func (c *spdyCarrier) Close() error { return c.carrier.Close() }

// A spdyConnection notes the status of its command.
type spdyConnection struct {
	httpstream.Connection
	used *spdyUse
}

func (c *spdyConnection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	stream, err := c.Connection.CreateStream(headers)
	if err == nil && headers.Get(corev1.StreamType) == corev1.StreamTypeError {
		return &statusStream{stream, c.used}, nil
	}
	return stream, err
}

type statusStream struct {
	httpstream.Stream
	used *spdyUse
}

func (s *statusStream) Read(into []byte) (int, error) {
	length, err := s.Stream.Read(into)
	if length > 0 {
		s.used.setStatus()
	}
	return length, err
}
