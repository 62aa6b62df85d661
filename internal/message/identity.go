package message

import (
	"context"
	"strings"
)

// Identity is whoever a delivery acts for (messaging.md §1.6). An Identity is immutable once it is in a
// context or a delivery. The zero value is no identity and is refused at post.
type Identity struct {
	Subject        string // the id that assignments name; never empty
	Name           string // for people
	Email          string
	Roles          []string // claims of the token; they never grant data
	TimeZone       string
	Locale         string
	ImpersonatedBy string
	Token          bool // authenticated by an API token
	Virtual        bool
	Hub            bool
}

// Well-known subjects.
const (
	SubjectSystem    = "system-security" // infrastructure; holds every permission
	SubjectAnonymous = "Anonymous"       // a visitor without credentials
	SubjectPublic    = "Public"          // in assignments: every authenticated subject
)

// SystemIdentity is the identity of the infrastructure.
func SystemIdentity() *Identity { return systemIdentity }

// AnonymousIdentity is the identity of a visitor without credentials.
func AnonymousIdentity() *Identity { return anonymousIdentity }

var (
	systemIdentity    = &Identity{Subject: SubjectSystem, Name: "System"}
	anonymousIdentity = &Identity{Subject: SubjectAnonymous, Name: "Anonymous"}
)

// IsSystem tells whether the identity is the infrastructure's.
func (i *Identity) IsSystem() bool { return i != nil && i.Subject == SubjectSystem }

// IsAnonymous tells whether the identity is a visitor's, or absent.
func (i *Identity) IsAnonymous() bool {
	return i == nil || i.Subject == "" || i.Subject == SubjectAnonymous
}

// hubShaped are the address types that never become an ambient identity (messaging.md §1.6).
var hubShaped = []string{"sync/", "mesh/", "node/", "activity/", "portal/"}

// HubShaped tells whether the subject is a hub's address instead of a person or a service.
func (i *Identity) HubShaped() bool {
	if i == nil {
		return false
	}
	for _, p := range hubShaped {
		if strings.HasPrefix(i.Subject, p) {
			return true
		}
	}
	return false
}

type identityKey struct{}

// IdentityKey is the context key under which an identity travels; contexts that hold one themselves
// answer it in Value.
func IdentityKey() any { return identityKey{} }

// identityContext is a context with an identity. It is a type of its own, so that a hub can read it
// without searching.
type identityContext struct {
	context.Context
	id *Identity
}

func (c *identityContext) Value(key any) any {
	if key == (identityKey{}) {
		return c.id
	}
	return c.Context.Value(key)
}

// WithIdentity returns a context that carries id.
func WithIdentity(ctx context.Context, id *Identity) context.Context {
	return &identityContext{ctx, id}
}

// Peel returns the identity that [WithIdentity] has just put on ctx, and the context below it; false when
// something else is outermost.
func Peel(ctx context.Context) (*Identity, context.Context, bool) {
	if c, ok := ctx.(*identityContext); ok {
		return c.id, c.Context, true
	}
	return nil, ctx, false
}

// IdentityFrom returns the identity in ctx, or nil.
func IdentityFrom(ctx context.Context) *Identity {
	id, _ := ctx.Value(identityKey{}).(*Identity)
	return id
}
