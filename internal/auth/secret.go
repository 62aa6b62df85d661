package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash/crc32"
	"strings"
)

// A secret is PREFIX + base64url(32 random bytes) + base64url(CRC-32 of what stands before). The
// checksum refuses a mistyped or cut secret without a look into the store, and lets scanners of leaked
// secrets be sure.
const (
	tokenPrefix   = "hm_"
	sessionPrefix = "hms_"
	codePrefix    = "hmc_"

	randomBytes  = 32
	bodyLength   = 43 // base64url of 32 bytes, without padding
	suffixLength = 6  // base64url of 4 bytes
)

// newSecret returns a new secret. Reading random bytes does not fail (crypto/rand crashes instead).
func newSecret(prefix string) string {
	var random [randomBytes]byte
	rand.Read(random[:]) //nolint:errcheck // documented never to fail
	body := prefix + base64.RawURLEncoding.EncodeToString(random[:])
	return body + checksum(body)
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	return base64.RawURLEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// wellFormed tells whether text has the form of a secret with prefix.
func wellFormed(prefix, text string) bool {
	if len(text) != len(prefix)+bodyLength+suffixLength || !strings.HasPrefix(text, prefix) {
		return false
	}
	body := text[:len(prefix)+bodyLength]
	return checksum(body) == text[len(body):]
}

// digest is what is stored of a secret.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// id names the record of a secret: the first 12 hexadecimal digits of its digest.
func (d digest) id() string { return hex.EncodeToString(d[:6]) }

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// equals compares with a stored digest in constant time.
func (d digest) equals(stored string) bool {
	return subtle.ConstantTimeCompare([]byte(d.String()), []byte(stored)) == 1
}
