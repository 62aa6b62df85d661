package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority makes certificates in files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.make("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) make(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore = time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", private)
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

func (a *authority) write(file, kind string, der []byte) {
	if err := os.WriteFile(a.path(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) path(file string) string { return filepath.Join(a.dir, file) }

func (a *authority) silo(name string, change func(*x509.Certificate)) *Security {
	a.t.Helper()
	c := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	if change != nil {
		change(c)
	}
	a.make(name, c)
	s, err := FromFiles(a.path(name+".crt"), a.path(name+".key"), a.path("ca.crt"))
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// decision 4: given certificates
func TestSilosWithCertificatesOfOneAuthorityTalkAndNoOthers(t *testing.T) {
	one, two := newAuthority(t), newAuthority(t)
	a := listen(t, "a", 1, newSpy(), func(c *Config) { c.Secure = one.silo("a", nil) })
	for name, test := range map[string]struct {
		secure *Security
		talks  bool
	}{
		"the same authority":             {one.silo("b", nil), true},
		"another authority":              {two.silo("b", nil), false},
		"a certificate that has expired": {one.silo("old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), false},
		"a certificate for another use": {one.silo("mail", func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := listen(t, "b", 2, newSpy(), func(c *Config) { c.Secure = test.secure })
			for _, pair := range [][2]*TCP{{a, b}, {b, a}} {
				done := make(chan error, 1)
				pair[0].Connect(pair[1].Self(), func(err error) { done <- err })
				if err := receive(t, "the connection", done); (err == nil) != test.talks {
					t.Fatal(err)
				}
			}
			a.Forget(2)
		})
	}
	for _, files := range [][3]string{{"none.crt", "a.key", "ca.crt"}, {"a.crt", "ca.key", "ca.crt"}, {"a.crt", "a.key", "none"}, {"a.crt", "a.key", "a.key"}} {
		if _, err := FromFiles(one.path(files[0]), one.path(files[1]), one.path(files[2])); err == nil {
			t.Errorf("%v: taken", files)
		}
	}
}
