package transport

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"
)

// Security is mutual TLS 1.3 between silos. Make it with [FromSecret] or [FromFiles].
type Security struct{ client, server *tls.Config }

// siloName is the one name in certificates that are made from a secret.
const siloName = "silo.hubmesh.internal"

// MinSecret is the least length of a cluster secret, in bytes.
const MinSecret = 16

// FromSecret derives the cluster's certificate authority from a secret that all silos share: an
// ed25519 key by HKDF-SHA256. This silo's own key is random, its certificate signed by that authority;
// a peer is whoever shows one that is. A new secret is a new cluster. Certificates do not expire, so
// that a silo with a wrong clock can join.
func FromSecret(secret []byte, cluster string) (*Security, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the cluster secret has %d bytes: give at least %d random ones", len(secret), MinSecret)
	}
	seed, err := hkdf.Key(sha256.New, secret, []byte("hubmesh cluster authority"), "v1 "+cluster, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the cluster's key: %w", err)
	}
	authorityKey := ed25519.NewKeyFromSeed(seed)
	authority := certificate("hubmesh cluster")
	authority.SerialNumber = big.NewInt(1)
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	root, err := sign(authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	own := certificate("hubmesh silo")
	if own.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	own.DNSNames, own.KeyUsage = []string{siloName}, x509.KeyUsageDigitalSignature
	own.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	leaf, err := sign(own, root, public, authorityKey)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	s := mutual(tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: private, Leaf: leaf}, roots)
	s.client.ServerName = siloName
	return s, nil
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no end
	}
}

func sign(c, by *x509.Certificate, public any, key ed25519.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, by, public, key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", c.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

// FromFiles reads a certificate, its key and the authority that signs all silos' certificates, in PEM.
// A peer is whoever shows a certificate of that authority that is valid now; host names in it are not
// compared, since silos find each other by the membership table.
func FromFiles(certFile, keyFile, authorityFile string) (*Security, error) {
	own, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("the silo's certificate: %w", err)
	}
	pem, err := os.ReadFile(authorityFile)
	if err != nil {
		return nil, fmt.Errorf("the authority of silos: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("the authority of silos: no certificate in %s", authorityFile)
	}
	s := mutual(own, roots)
	// The library's own check would compare host names; this one does all else that it does.
	s.client.InsecureSkipVerify = true
	s.client.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the silo shows no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
	return s, nil
}

func mutual(own tls.Certificate, roots *x509.CertPool) *Security {
	base := tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, DynamicRecordSizingDisabled: true}
	client, server := base.Clone(), base.Clone()
	client.RootCAs = roots
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, roots
	server.SessionTicketsDisabled = true
	return &Security{client: client, server: server}
}
