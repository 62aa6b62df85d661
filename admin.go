package hubmesh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/auth"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// adminSubject is who the token of the first start speaks as.
const adminSubject = "admin"

// adminPath is the assignment that a first start makes.
const adminPath = node.Path("_Access/" + adminSubject + "_Access")

// WithdrawnError says that the subject of the Admin token file, or of a sign-in link, is no Admin of the mesh. A start
// does not change that.
type WithdrawnError struct {
	Subject string
	// Others tells whether somebody else who can sign in is Admin of the root scope.
	Others bool
	// File is the Admin token file; "" where none was asked for.
	File string
}

func (e *WithdrawnError) Error() string {
	what := fmt.Sprintf("'%s' is no Admin of this mesh", e.Subject)
	switch {
	case e.Others:
		return what + ", and others are: ask one of them for a grant"
	case e.File == "":
		return what + ", and nobody else who can sign in is: start the server without its Admin token file to make an Admin"
	}
	return fmt.Sprintf("%s, and nobody else who can sign in is: stop the server, remove '%s' and start it again; it then ends the old tokens and sessions of '%s', makes it Admin and writes a new token",
		what, e.File, adminSubject)
}

// AdminToken sees to it that there is an Admin of the root scope who can sign in, and a token file. Where there
// never was an Admin, it grants the first one. The token is written to file, mode 0600, when the file is not there
// yet; created tells so. A file that is there must hold a token that is good in this mesh: nobody is to find out
// later that it is not.
//
// An Admin who was withdrawn stays so, and is told of as *[WithdrawnError]: the mesh can be served. Where nobody who
// can sign in is Admin any more, whoever may remove the file owns the mesh: without it the first Admin is made
// anew, after its old tokens and sessions were ended.
func (m *Mesh) AdminToken(ctx context.Context, file string) (created bool, err error) {
	ctx = AsSystem(ctx)
	speaks, err := m.readAdminToken(ctx, file)
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return false, err
	}
	standing, err := m.seeToAdmin(ctx, absent)
	if err != nil {
		return false, err
	}
	if absent && standing.is(adminSubject) {
		if created, err = m.writeAdminToken(ctx, file); created || err != nil {
			return created, err
		}
		speaks, err = m.readAdminToken(ctx, file) // another process of this mesh was first
		if errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("admin token file: '%s' is a link that leads nowhere; remove it, or name another file", file)
		}
		if err != nil {
			return false, err
		}
	}
	if absent && speaks == "" {
		speaks = adminSubject
	}
	if !standing.is(speaks) {
		return false, &WithdrawnError{Subject: speaks, Others: standing.acts, File: file}
	}
	return false, nil
}

// standing is who is Admin of the root scope.
type standing struct {
	admins []access.Subject
	acts   bool // one of them can sign in
}

func (s standing) is(subject string) bool { return slices.Contains(s.admins, access.Subject(subject)) }

// standing looks up who is Admin.
func (m *Mesh) standing(ctx context.Context) (s standing, err error) {
	if s.admins = m.access.RootAdmins(); len(s.admins) == 0 {
		return s, nil
	}
	holders, err := m.auth.Holders(ctx)
	s.acts = slices.ContainsFunc(s.admins, func(a access.Subject) bool { return holders[string(a)] })
	return s, err
}

// seeToAdmin makes the first Admin where there never was one, and anew where nobody can act as Admin and anew says
// so.
func (m *Mesh) seeToAdmin(ctx context.Context, anew bool) (standing, error) {
	bound, cancel := m.hubs.Bounds().Context(ctx, budget.Initialise, "who is Admin")
	err := m.told(bound) // what other processes did before this start counts
	cancel()
	if err != nil {
		return standing{}, fmt.Errorf("reading who is Admin: %w", err)
	}
	never := false
	n, err := m.store.Read(ctx, adminPath)
	var absent *store.NotFoundError
	switch {
	case err == nil:
		// Another process may have written it a moment ago: it counts here from now on, and not from when it is heard of.
		m.access.Apply(access.Change{Path: adminPath, Version: n.Version, Node: n})
	case errors.As(err, &absent):
		never = absent.LastVersion == 0
	default:
		return standing{}, err
	}
	s, err := m.standing(ctx)
	if err != nil || s.is(adminSubject) || s.acts || !never && !anew {
		return s, err
	}
	if !never {
		m.log.Warn("nobody who can sign in is Admin of this mesh, and there is no Admin token file: the first Admin is made anew", "subject", adminSubject)
		if err := m.auth.EndAll(ctx, adminSubject); err != nil {
			return s, fmt.Errorf("ending the old credentials of '%s': %w", adminSubject, err)
		}
	}
	if err := m.insist(ctx, func() error { return m.grantAdmin(ctx) }); err != nil {
		return s, fmt.Errorf("granting the first Admin: %w", err)
	}
	// Another silo may serve the assignment and have written it: it counts here from now on.
	if n, err = m.store.Read(ctx, adminPath); err != nil {
		return s, fmt.Errorf("granting the first Admin: %w", err)
	}
	m.access.Apply(access.Change{Path: adminPath, Version: n.Version, Node: n})
	if s.admins = m.access.RootAdmins(); !s.is(adminSubject) {
		return s, fmt.Errorf("granting the first Admin: '%s' was written, and '%s' is still no Admin: look at what is below '_Access'", adminPath, adminSubject)
	}
	return s, nil
}

// grantAdmin makes the first Admin, and takes away what denies it to him.
func (m *Mesh) grantAdmin(ctx context.Context) error {
	for _, path := range m.access.RootDenials(adminSubject) {
		if path == adminPath {
			continue
		}
		_, err := m.nodes.Delete(ctx, path, false, nodehub.Condition{})
		if err != nil && !errors.As(err, new(*store.NotFoundError)) {
			return err
		}
		m.log.Warn("an assignment that denied something to the first Admin was removed", "path", string(path))
	}
	if n, err := m.store.Read(ctx, adminPath); err == nil && !assigns(n, adminSubject) {
		m.log.Warn("an assignment of somebody else is replaced by that of the first Admin", "path", string(adminPath), "version", n.Version, "content", n.Content.Text())
	}
	return m.nodes.Grant(ctx, "", adminSubject, "Admin")
}

// assigns tells whether an assignment speaks of a subject.
func assigns(n node.Node, subject string) bool {
	var a struct {
		AccessObject string `json:"accessObject"`
	}
	return n.Content.Decode(&a) == nil && a.AccessObject == subject
}

// readAdminToken returns who the token in a file speaks as. It refuses a file without a good token, and says what to
// do; one that others may read is told in the log.
func (m *Mesh) readAdminToken(ctx context.Context, file string) (subject string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("admin token file: %w; remove what is there, or name another file", err)
	}
	r, err := m.auth.Tokens.Check(ctx, strings.TrimSpace(string(text)))
	if errors.As(err, new(*auth.UnauthenticatedError)) {
		return "", fmt.Errorf("admin token file: '%s' holds no token that is good in this mesh; remove the file, and the next start writes a new one, or name another file", file)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		m.log.Warn("others on this machine may read, or replace, the Admin token file: take their rights with chmod 600, or revoke the token and remove the file for a new one",
			"file", file, "mode", fmt.Sprintf("%#o", info.Mode().Perm()))
	}
	return r.Subject, err
}

// writeAdminToken makes a token and its file, whole or not at all. created is false where a file is there by
// now.
func (m *Mesh) writeAdminToken(ctx context.Context, file string) (created bool, err error) {
	fail := func(err error) (bool, error) { return false, fmt.Errorf("admin token file: %w", err) }
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fail(err)
	}
	f, err := os.OpenFile(file+"."+m.id, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	token, id, err := m.auth.Tokens.Issue(ctx, adminSubject, "first start")
	if err == nil {
		_, err = f.WriteString(token + "\n")
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fail(err)
	}
	err = os.Link(f.Name(), file)
	if errors.Is(err, fs.ErrExist) {
		return false, m.auth.Tokens.Revoke(ctx, id)
	}
	if err != nil {
		return fail(err)
	}
	return true, nil
}

// LoginCode returns a code that works once, within ten minutes, to sign a browser in as the first Admin;
// *[WithdrawnError] where that one is no Admin.
func (m *Mesh) LoginCode() (string, error) {
	if !slices.Contains(m.access.RootAdmins(), adminSubject) {
		s, err := m.standing(m.hubs.Context())
		return "", errors.Join(err, &WithdrawnError{Subject: adminSubject, Others: s.acts})
	}
	return m.auth.Sessions.NewCode(adminSubject, "Admin")
}
