package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const containerdSocket = "/run/k3s/containerd/containerd.sock"

// bringUp starts everything, each as soon as what it needs is there, and tells when all of it can be used.
func (s *k3sServer) bringUp(ctx context.Context, programs *supervisor) {
	programs.run("etcd", s.etcd()...)
	programs.run("kube-apiserver", s.apiServer()...)
	if !s.withoutAgent {
		s.writeAgentFiles()
		programs.run("containerd", "--config="+s.path("agent/etc/containerd/config.toml"))
		s.sealNetwork()
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.credentials("client-admin"))
	must(err)
	config.UserAgent, config.Timeout, config.QPS = "k3s", 2*time.Second, -1
	client := kubernetes.NewForConfigOrDie(config)

	steps := []struct {
		done   string
		skip   bool
		before func()
		until  func() bool
	}{
		{done: "containerd is up", skip: s.withoutAgent, until: func() bool {
			connection, err := net.Dial("unix", containerdSocket)
			if err == nil {
				connection.Close()
			}
			return err == nil
		}},
		{done: "Kube API server is now running", before: func() {
			if !s.withoutAgent {
				s.importImages()
			}
		}, until: func() bool {
			// Until the RBAC hook has run, the programs below would be refused, and end.
			answer, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err == nil && string(answer) == "ok"
		}},
		{done: "the default service account exists", before: func() { s.startClients(ctx, programs) }, until: func() bool {
			_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
			return err == nil
		}},
		{done: "node " + s.node + " is ready", skip: s.withoutAgent, until: func() bool {
			node, err := client.CoreV1().Nodes().Get(ctx, s.node, metav1.GetOptions{})
			return err == nil && readySince(node, started) && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
				return taint.Key == corev1.TaintNodeNotReady
			})
		}},
	}
	for _, step := range steps {
		if step.skip {
			continue
		}
		if step.before != nil {
			step.before()
		}
		for !step.until() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		say("%s", step.done)
	}
	// Programs that start k3s wait for this line.
	say("Node controller sync successful")
}

// readySince tells whether the node said so itself after that time: etcd remembers what it said before a restart.
func readySince(node *corev1.Node, since time.Time) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue &&
			condition.LastHeartbeatTime.After(since.Add(-time.Second))
	})
}

// startClients starts what needs a ready API server.
func (s *k3sServer) startClients(ctx context.Context, programs *supervisor) {
	programs.run("kube-controller-manager", s.controllerManager()...)
	if !s.withoutSched {
		programs.run("kube-scheduler", s.scheduler()...)
	}
	if s.withoutAgent {
		return
	}
	programs.run("kubelet", s.kubelet()...)
	if !s.withoutProxy {
		programs.run("kube-proxy", s.proxy()...)
	}
	s.provideVolumes(ctx)
}

// importImages gives containerd the archives of the image, and those that the caller laid into k3s's directory.
func (s *k3sServer) importImages() {
	own, _ := filepath.Glob("/usr/share/k3s/images/*.tar")
	callers, _ := filepath.Glob(s.path("agent/images/*.tar*"))
	for _, archive := range append(own, callers...) {
		file, err := os.Stat(archive)
		must(err)
		// containerd's store outlives the container: a restart need not import again.
		name := fmt.Sprintf("%s-%d-%d", filepath.Base(archive), file.Size(), file.ModTime().UnixNano())
		imported := s.path("agent/imported", name)
		if _, err := os.Stat(imported); err == nil {
			continue
		}
		output, err := exec.Command("/bin/ctr", "--address", containerdSocket, "--namespace", "k8s.io",
			"images", "import", "--local", "--snapshotter", s.snapshotter, archive).CombinedOutput()
		if err != nil {
			say("images of %s: %v: %s", archive, err, strings.TrimSpace(string(output)))
			continue
		}
		say("Imported images from %s", archive)
		must(os.WriteFile(imported, nil, 0o644))
	}
}

// with appends what the caller wants: the last of two equal flags wins.
func (s *k3sServer) with(program string, arguments ...string) []string {
	for _, argument := range *s.extra[program] {
		arguments = append(arguments, "--"+strings.TrimLeft(argument, "-"))
	}
	return arguments
}

func (s *k3sServer) etcd() []string {
	return []string{
		"--name=default", "--data-dir=" + s.path("server/db/etcd"), "--log-level=warn",
		// Whatever the container does to itself, the machine's page cache survives.
		"--unsafe-no-fsync=true",
		// The only member elects itself after one election timeout.
		"--heartbeat-interval=20", "--election-timeout=100",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380",
	}
}

func (s *k3sServer) apiServer() []string {
	return s.with("kube-apiserver",
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=0.0.0.0", fmt.Sprintf("--secure-port=%d", s.port), "--advertise-address="+s.address.IP.String(),
		"--tls-cert-file="+s.tls("serving-kube-apiserver.crt"), "--tls-private-key-file="+s.tls("serving-kube-apiserver.key"),
		"--client-ca-file="+s.tls("client-ca.crt"), "--anonymous-auth=false",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+s.tls("service.pub"), "--service-account-signing-key-file="+s.tls("service.key"),
		"--service-cluster-ip-range="+s.services,
		"--kubelet-certificate-authority="+s.tls("server-ca.crt"), "--kubelet-preferred-address-types=InternalIP,Hostname",
		"--kubelet-client-certificate="+s.tls("client-kube-apiserver.crt"), "--kubelet-client-key="+s.tls("client-kube-apiserver.key"),
		"--requestheader-client-ca-file="+s.tls("request-header-ca.crt"), "--requestheader-allowed-names=system:auth-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+s.tls("client-auth-proxy.crt"), "--proxy-client-key-file="+s.tls("client-auth-proxy.key"),
		"--profiling=false",
	)
}

// asClient are the flags of a program that is a client of the API server and serves only its own health.
func (s *k3sServer) asClient(user string) []string {
	file := s.credentials(user)
	return []string{
		"--kubeconfig=" + file, "--authentication-kubeconfig=" + file, "--authorization-kubeconfig=" + file,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--profiling=false",
	}
}

func (s *k3sServer) controllerManager() []string {
	return s.with("kube-controller-manager", append(s.asClient("client-controller"),
		"--root-ca-file="+s.tls("server-ca.crt"), "--service-account-private-key-file="+s.tls("service.key"),
		"--use-service-account-credentials=true", "--cluster-cidr="+s.pods, "--allocate-node-cidrs=true",
		"--cluster-signing-cert-file="+s.tls("client-ca.crt"), "--cluster-signing-key-file="+s.tls("client-ca.key"),
		// With the default of 20 requests a second, four seconds of its start are waiting.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		// Classes with the provisioner kubernetes.io/host-path.
		"--enable-hostpath-provisioner=true",
	)...)
}

func (s *k3sServer) scheduler() []string {
	return s.with("kube-scheduler", s.asClient("client-scheduler")...)
}

func (s *k3sServer) kubelet() []string {
	arguments := []string{
		"--config=" + s.path("agent/etc/kubelet.yaml"), "--kubeconfig=" + s.credentials("client-kubelet"),
		"--hostname-override=" + s.node, "--node-ip=" + s.address.IP.String(), "--root-dir=/var/lib/kubelet",
	}
	if len(s.labels) > 0 {
		arguments = append(arguments, "--node-labels="+strings.Join(s.labels, ","))
	}
	if len(s.taints) > 0 {
		arguments = append(arguments, "--register-with-taints="+strings.Join(s.taints, ","))
	}
	return s.with("kubelet", arguments...)
}

func (s *k3sServer) proxy() []string {
	return s.with("kube-proxy",
		"--kubeconfig="+s.credentials("client-kube-proxy"), "--hostname-override="+s.node, "--cluster-cidr="+s.pods,
		"--proxy-mode=iptables", "--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249",
		// These are the machine's, or need a capability that may be missing.
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--oom-score-adj=0",
	)
}
