package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writeAgentFiles writes the configurations of containerd, kubelet and the pod network.
func (s *k3sServer) writeAgentFiles() {
	write := func(path, content string, values ...any) {
		path = s.path("agent/etc", path)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, fmt.Appendf(nil, content, values...), 0o644))
	}
	write("containerd/config.toml", containerdConfig, s.data, s.snapshotter, containerdSocket)
	write("containerd/certs.d/_default/hosts.toml", noRegistry)
	write("cni/net.d/10-pods.conflist", podNetwork, strings.Replace(s.pods, "/16", "/24", 1))
	write("kubelet.yaml", kubeletConfig, s.data, s.serviceAddress(10), containerdSocket)
}

// The scores and the controllers are what a container may not or cannot set.
const containerdConfig = `version = 3
root = "%[1]s/agent/containerd"
state = "/run/k3s/containerd"

[grpc]
  address = "%[3]s"

[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/agent/containerd"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "%[2]s"
  disable_snapshot_annotations = true
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "localhost/spiritlevel/pause:1"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "%[1]s/agent/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "%[1]s/agent/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
`

// An image that was not imported fails at once, and nothing leaves the machine.
const noRegistry = `server = "http://127.0.0.1:1"
[host."http://127.0.0.1:1"]
  capabilities = ["pull", "resolve"]
`

// A routed pair for each pod: a bridge would need br_netfilter for services. Leases die with /run, like the pods' networks.
const podNetwork = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-leases",
    "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
oomScoreAdj: 0
failSwapOn: false
featureGates:
  # Errors about limits that a container cannot raise become log lines.
  KubeletInUserNamespace: true
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]s/server/tls/client-ca.crt}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/server/tls/serving-kubelet.crt
tlsPrivateKeyFile: %[1]s/server/tls/serving-kubelet.key
clusterDNS: [%[2]s]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://%[3]s
staticPodPath: %[1]s/agent/pod-manifests
resolvConf: /etc/resolv.conf
# A developer's disk is fuller than a server's.
evictionHard: {imagefs.available: "1%%", nodefs.available: "1%%"}
imageGCHighThresholdPercent: 100
`

// sealNetwork keeps pods inside: they reach each other, the container's network, and hosts that /etc/hosts names. A service
// address that kube-proxy has not translated is refused instead of being sent to whatever is outside.
func (s *k3sServer) sealNetwork() {
	rules := [][]string{
		{"-t", "nat", "-A", "POSTROUTING", "-s", s.pods, "!", "-d", s.pods, "-j", "MASQUERADE"},
		{"-A", "OUTPUT", "-d", s.services, "-j", "REJECT"},
		{"-A", "FORWARD", "-d", s.services, "-j", "REJECT"},
		{"-N", "PODS-OUT"},
		{"-A", "FORWARD", "-s", s.pods, "-j", "PODS-OUT"},
	}
	for _, inside := range append(namedHosts(), s.pods, s.address.String()) {
		rules = append(rules, []string{"-A", "PODS-OUT", "-d", inside, "-j", "RETURN"})
	}
	rules = append(rules, []string{"-A", "PODS-OUT", "-j", "REJECT"})
	for _, rule := range rules {
		if output, err := exec.Command("iptables", append([]string{"--wait"}, rule...)...).CombinedOutput(); err != nil {
			say("iptables %s: %v: %s", strings.Join(rule, " "), err, strings.TrimSpace(string(output)))
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		say("pods cannot leave the node: %v", err)
	}
}

// namedHosts are the addresses that the container was started with, such as --add-host=host.docker.internal:host-gateway.
func namedHosts() (addresses []string) {
	content, _ := os.ReadFile("/etc/hosts")
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if ip := net.ParseIP(fields[0]); ip != nil && ip.To4() != nil && !ip.IsLoopback() {
			addresses = append(addresses, ip.String())
		}
	}
	return addresses
}
