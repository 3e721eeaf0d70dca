package main

import (
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	namer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/cluster/ports"
	"k8s.io/kubernetes/pkg/generated/openapi"
	"sigs.k8s.io/metrics-server/pkg/api"
	"sigs.k8s.io/metrics-server/pkg/scraper/client"
	metrics "sigs.k8s.io/metrics-server/pkg/server"
)

// How often the kubelet is asked, and how long it may take to answer.
const (
	resolution    = 10 * time.Second
	scrapeTimeout = 5 * time.Second
)

// metricsServer has the options of metrics-server that a local cluster needs.
// The command of metrics-server itself does not compile with this version of Kubernetes; its packages do.
type metricsServer struct {
	kubeconfig, kubeletAuthority string
	serving                      *options.SecureServingOptionsWithLoopback
	authentication               *options.DelegatingAuthenticationOptions
	authorization                *options.DelegatingAuthorizationOptions
}

func newMetricsServerCommand() *cobra.Command {
	m := metricsServer{
		serving:        options.NewSecureServingOptions().WithLoopback(),
		authentication: options.NewDelegatingAuthenticationOptions(),
		authorization:  options.NewDelegatingAuthorizationOptions(),
	}
	command := &cobra.Command{
		Use:   "metrics-server",
		Short: "Serve the use of CPU and memory of pods and nodes",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return m.run(server.SetupSignalHandler()) },
	}
	flags := command.Flags()
	flags.StringVar(&m.kubeconfig, "kubeconfig", "", "kubeconfig for the API server and the kubelet")
	flags.StringVar(&m.kubeletAuthority, "kubelet-certificate-authority", "", "authority of the kubelet's certificate")
	m.serving.AddFlags(flags)
	m.authentication.AddFlags(flags)
	m.authorization.AddFlags(flags)
	return command
}

func (m *metricsServer) run(stop <-chan struct{}) error {
	clientConfig, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig)
	if err != nil {
		return err
	}
	serverConfig, err := m.serverConfig()
	if err != nil {
		return err
	}
	completed, err := metrics.Config{
		Apiserver:        serverConfig,
		Rest:             clientConfig,
		Kubelet:          m.kubeletConfig(clientConfig),
		MetricResolution: resolution,
		ScrapeTimeout:    scrapeTimeout,
	}.Complete()
	if err != nil {
		return err
	}
	return completed.RunUntil(stop)
}

// serverConfig has every request authenticated and authorized by the API server.
func (m *metricsServer) serverConfig() (*server.Config, error) {
	config := server.NewConfig(api.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	names := namer.NewDefinitionNamer(api.Scheme)
	config.OpenAPIConfig = server.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, names)
	config.OpenAPIV3Config = server.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, names)
	if err := m.serving.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return nil, err
	}
	if err := m.authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
		return nil, err
	}
	return config, m.authorization.ApplyTo(&config.Authorization)
}

func (m *metricsServer) kubeletConfig(api *rest.Config) *client.KubeletClientConfig {
	config := rest.CopyConfig(api)
	config.CAFile, config.CAData = m.kubeletAuthority, nil
	return &client.KubeletClientConfig{
		Client:              *config,
		AddressTypePriority: []corev1.NodeAddressType{corev1.NodeInternalIP},
		Scheme:              "https",
		DefaultPort:         ports.KubeletPort,
	}
}
