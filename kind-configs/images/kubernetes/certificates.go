package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs certificates; its own and those that it signs are files in one directory.
type authority struct {
	directory   string
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority makes one, or reads the one that an earlier start made.
func newAuthority(directory, name string) *authority {
	certificate, key := filepath.Join(directory, name+".crt"), filepath.Join(directory, name+".key")
	if _, err := os.Stat(certificate); err != nil {
		signer := newKey(key)
		template := &x509.Certificate{
			SerialNumber:          serial(),
			Subject:               pkix.Name{CommonName: "k3s-" + name},
			NotBefore:             time.Now().Add(-time.Hour),
			NotAfter:              time.Now().AddDate(10, 0, 0),
			IsCA:                  true,
			BasicConstraintsValid: true,
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
		must(err)
		writePEM(certificate, "CERTIFICATE", der, 0o644)
	}
	parsed, err := x509.ParseCertificate(readPEM(certificate))
	must(err)
	signer, err := x509.ParsePKCS8PrivateKey(readPEM(key))
	must(err)
	return &authority{directory, parsed, signer.(crypto.Signer)}
}

// client makes a certificate for a user, and for the group that it is in, if any.
func (a *authority) client(file, user string, groups ...string) {
	a.sign(file, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server makes a certificate for a server with these names and addresses.
func (a *authority) server(file, name string, hosts ...string) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	a.sign(file, template)
}

func (a *authority) sign(file string, template *x509.Certificate) {
	key := newKey(filepath.Join(a.directory, file+".key"))
	template.SerialNumber = serial()
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	must(err)
	writePEM(filepath.Join(a.directory, file+".crt"), "CERTIFICATE", der, 0o644)
}

// newServiceAccountKey makes the pair with which tokens are signed and checked, once.
func newServiceAccountKey(directory string) {
	public := filepath.Join(directory, "service.pub")
	if _, err := os.Stat(public); err == nil {
		return
	}
	der, err := x509.MarshalPKIXPublicKey(newKey(filepath.Join(directory, "service.key")).Public())
	must(err)
	writePEM(public, "PUBLIC KEY", der, 0o644)
}

func newKey(path string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	writePEM(path, "PRIVATE KEY", der, 0o600)
	return key
}

func serial() *big.Int {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	must(err)
	return number
}

func writePEM(path, kind string, der []byte, mode os.FileMode) {
	must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode))
}

func readPEM(path string) []byte {
	content, err := os.ReadFile(path)
	must(err)
	block, _ := pem.Decode(content)
	if block == nil {
		must(fmt.Errorf("%s holds no PEM", path))
	}
	return block.Bytes
}

// writeKubeconfig writes one that needs no other file; all its names are `default`, as k3s has them.
func writeKubeconfig(path, server, certificates, user string, mode os.FileMode) {
	data := func(file string) string {
		content, err := os.ReadFile(filepath.Join(certificates, file))
		must(err)
		return base64.StdEncoding.EncodeToString(content)
	}
	content := fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
preferences: {}
users:
- name: default
  user:
    client-certificate-data: %s
    client-key-data: %s
`, data("server-ca.crt"), server, data(user+".crt"), data(user+".key"))
	must(os.MkdirAll(filepath.Dir(path), 0o755))
	// Whoever copies it out must not get half of it.
	partial := path + ".partial"
	must(os.WriteFile(partial, []byte(content), mode))
	must(os.Chmod(partial, mode))
	must(os.Rename(partial, path))
}
