// Command kubernetes is every Kubernetes program that a node needs, in one binary: it is the one by whose name it is called.
// One copy of the shared code instead of seven, in memory and in the images. As `k3s` it is also the first process of a
// container with k3s's contract.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	// As `k3s kubectl …`, or by its own name, it is told by the first argument who it is.
	if (name == "k3s" || name == "kubernetes") && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	switch name {
	case "kube-apiserver":
		serve(kubeapiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		serve(kubecontrollermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		serve(kubescheduler.NewSchedulerCommand())
	case "kubelet":
		serve(kubelet.NewKubeletCommand(context.Background()))
	case "kube-proxy":
		serve(kubeproxy.NewProxyCommand())
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
	case "kubeadm":
		kubeadmerrors.HandleError(kubeadm.Run())
	case "server":
		os.Exit(runK3s(os.Args[1:]))
	case "volumes":
		os.Exit(runVolumes(os.Args[1:]))
	case "--version", "-v":
		fmt.Printf("k3s version %s (a stand-in with its contract)\n", version.Get().GitVersion)
	default:
		fmt.Fprintf(os.Stderr, "unknown command %q\n", name)
		os.Exit(2)
	}
}

func serve(command *cobra.Command) {
	os.Exit(cli.Run(command))
}
