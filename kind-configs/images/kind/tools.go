//go:build tools

// Package kind pins the program kind.
package kind

import _ "sigs.k8s.io/kind"
