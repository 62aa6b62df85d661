package httpapi

import "context"

// CredentialFrom returns the credential that the request of ctx was let in with; nil where there is none. It is for work
// that goes on after the answer.
func CredentialFrom(ctx context.Context) Credential {
	c, _ := ctx.Value(credentialKey{}).(Credential)
	return c
}
