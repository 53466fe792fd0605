package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// k3sServer is `k3s server` as callers from outside see it: flags, environment, kubeconfig, volumes, log line. Inside it is
// the plain Kubernetes programs, with etcd beside them.
type k3sServer struct {
	disabled      []string
	withoutAgent  bool
	withoutSched  bool
	withoutProxy  bool
	kubeconfig    string
	kubeconfigFor os.FileMode
	port          int
	data          string
	node          string
	address       *net.IPNet
	names         []string
	pods          string
	services      string
	snapshotter   string
	extra         map[string]*[]string
	labels        []string
	taints        []string
	token         string
	forgot        []string
}

// Flags of k3s that mean nothing here: they are named in the log and forgotten. Any other unknown flag is an error, as with k3s.
var forgotten = []string{
	"advertise-address", "bind-address", "cluster-domain", "cluster-init", "debug", "default-local-storage-path",
	"disable-apiserver", "disable-cloud-controller", "disable-etcd", "disable-helm-controller", "disable-network-policy",
	"egress-selector-mode", "embedded-registry", "etcd-arg", "flannel-backend", "flannel-iface", "kube-cloud-controller-manager-arg",
	"log", "node-external-ip", "node-ip", "prefer-bundled-bin", "protect-kernel-defaults", "resolv-conf", "rootless",
	"secrets-encryption", "system-default-registry", "v", "vmodule",
}

func runK3s(arguments []string) int {
	server, err := parseK3s(arguments)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	must(err)
	if os.Getenv(stage) == "" {
		return firstProcess(!server.withoutAgent)
	}
	must(os.Unsetenv(stage))
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	say("Starting k3s-shaped server on node %s, without %v", server.node, server.disabled)
	if len(server.forgot) > 0 {
		say("these flags mean nothing here: %v", server.forgot)
	}
	server.prepare()
	programs := newSupervisor("/var/log/k3s")
	go server.bringUp(ctx, programs)
	<-ctx.Done()
	say("stopping")
	programs.stop()
	return 0
}

func parseK3s(arguments []string) (*k3sServer, error) {
	s := &k3sServer{extra: map[string]*[]string{}}
	environment := func(name, otherwise string) string {
		if value := os.Getenv(name); value != "" {
			return value
		}
		return otherwise
	}
	flags := pflag.NewFlagSet("k3s server", pflag.ContinueOnError)
	flags.StringSliceVar(&s.disabled, "disable", nil, "packaged components to leave out")
	flags.BoolVar(&s.withoutAgent, "disable-agent", false, "no node: the control plane only")
	flags.BoolVar(&s.withoutSched, "disable-scheduler", false, "no scheduler")
	flags.BoolVar(&s.withoutProxy, "disable-kube-proxy", false, "no kube-proxy")
	flags.StringVarP(&s.token, "token", "t", environment("K3S_TOKEN", ""), "secret with which nodes would join")
	flags.StringVarP(&s.kubeconfig, "write-kubeconfig", "o", environment("K3S_KUBECONFIG_OUTPUT", "/etc/rancher/k3s/k3s.yaml"), "the administrator's kubeconfig")
	mode := flags.String("write-kubeconfig-mode", environment("K3S_KUBECONFIG_MODE", "600"), "its permissions")
	flags.IntVar(&s.port, "https-listen-port", 6443, "port of the API server")
	flags.StringVarP(&s.data, "data-dir", "d", environment("K3S_DATA_DIR", "/var/lib/rancher/k3s"), "directory of all state")
	flags.StringVar(&s.node, "node-name", environment("K3S_NODE_NAME", ""), "the node's name, else the host's")
	flags.StringSliceVar(&s.names, "tls-san", nil, "further names and addresses of the API server")
	flags.StringVar(&s.pods, "cluster-cidr", "10.42.0.0/16", "addresses of pods")
	flags.StringVar(&s.services, "service-cidr", "10.43.0.0/16", "addresses of services")
	flags.StringVar(&s.snapshotter, "snapshotter", "overlayfs", "containerd's snapshotter")
	flags.StringArrayVar(&s.labels, "node-label", nil, "labels of the node")
	flags.StringArrayVar(&s.taints, "node-taint", nil, "taints of the node")
	for flag, program := range map[string]string{
		"kube-apiserver-arg": "kube-apiserver", "kube-controller-manager-arg": "kube-controller-manager",
		"kube-scheduler-arg": "kube-scheduler", "kubelet-arg": "kubelet", "kube-proxy-arg": "kube-proxy",
	} {
		s.extra[program] = flags.StringArray(flag, nil, "argument of "+program)
	}
	for _, name := range forgotten {
		flags.String(name, "", "")
		flags.Lookup(name).NoOptDefVal = "true"
		must(flags.MarkHidden(name))
	}
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	flags.Visit(func(flag *pflag.Flag) {
		if slices.Contains(forgotten, flag.Name) {
			s.forgot = append(s.forgot, flag.Name)
		}
	})
	bits, err := strconv.ParseUint(*mode, 8, 32)
	if err != nil {
		return nil, fmt.Errorf("write-kubeconfig-mode %q is no octal number", *mode)
	}
	s.kubeconfigFor = os.FileMode(bits)
	if s.node == "" {
		host, err := os.Hostname()
		must(err)
		s.node = strings.ToLower(host)
	}
	s.address = nodeAddress()
	return s, nil
}

// nodeAddress is the first address that others can reach, else loopback.
func nodeAddress() *net.IPNet {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && !network.IP.IsLoopback() {
			return network
		}
	}
	return &net.IPNet{IP: net.IPv4(127, 0, 0, 1), Mask: net.CIDRMask(32, 32)}
}

// serviceAddress is the n-th of the services' addresses.
func (s *k3sServer) serviceAddress(n byte) string {
	_, network, err := net.ParseCIDR(s.services)
	must(err)
	address := slices.Clone(network.IP.To4())
	address[3] += n
	return address.String()
}

func (s *k3sServer) url() string { return fmt.Sprintf("https://127.0.0.1:%d", s.port) }

func (s *k3sServer) path(parts ...string) string {
	return filepath.Join(append([]string{s.data}, parts...)...)
}

func (s *k3sServer) tls(file string) string { return s.path("server/tls", file) }

func (s *k3sServer) credentials(user string) string {
	return s.path("server/cred", user+".kubeconfig")
}

// storage is where k3s keeps the volumes that it makes for claims.
func (s *k3sServer) storage() string { return s.path("storage") }

// prepare makes every file that a program reads. State of an earlier start stays: authorities, keys, etcd's data.
func (s *k3sServer) prepare() {
	for _, directory := range []string{
		s.path("server/tls"), s.path("server/cred"), s.path("agent/images"), s.path("agent/imported"),
		s.path("agent/containerd"), s.path("agent/pod-manifests"), s.storage(), "/var/log/k3s",
		"/run/k3s/containerd", "/var/lib/kubelet",
	} {
		must(os.MkdirAll(directory, 0o755))
	}
	must(os.MkdirAll(s.path("server/db/etcd"), 0o700))
	must(os.WriteFile(s.path("server/token"), []byte(s.token+"\n"), 0o600))
	tls := s.path("server/tls")
	server := newAuthority(tls, "server-ca")
	client := newAuthority(tls, "client-ca")
	front := newAuthority(tls, "request-header-ca")
	newServiceAccountKey(tls)
	// Anew at each start, because the address can be another one, and an expiry never comes.
	address := s.address.IP.String()
	server.server("serving-kube-apiserver", "kube-apiserver", append([]string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"127.0.0.1", "::1", s.serviceAddress(1), address, s.node,
	}, s.names...)...)
	server.server("serving-kubelet", s.node, s.node, "localhost", "127.0.0.1", address)
	client.client("client-admin", "system:admin", "system:masters")
	client.client("client-kube-apiserver", "kube-apiserver", "system:masters")
	front.client("client-auth-proxy", "system:auth-proxy")
	for file, user := range map[string]string{
		"client-controller": "system:kube-controller-manager", "client-scheduler": "system:kube-scheduler",
		"client-kube-proxy": "system:kube-proxy",
	} {
		client.client(file, user)
		writeKubeconfig(s.credentials(file), s.url(), tls, file, 0o600)
	}
	client.client("client-kubelet", "system:node:"+s.node, "system:nodes")
	writeKubeconfig(s.credentials("client-kubelet"), s.url(), tls, "client-kubelet", 0o600)
	writeKubeconfig(s.credentials("client-admin"), s.url(), tls, "client-admin", 0o600)
	writeKubeconfig(s.kubeconfig, s.url(), tls, "client-admin", s.kubeconfigFor)
	say("Wrote kubeconfig %s", s.kubeconfig)
}
