//go:build tools

// Package controlplane pins the Kubernetes servers that the provider `local` runs.
package controlplane

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
