package httpapi

import (
	"html/template"
	"net/http"
	"strings"
)

// signInFailed answers a browser that followed a login link in vain; it works without the page.
var signInFailed = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title></head>
<body><h1>{{.Title}}</h1><p>{{.Detail}}</p>
<p>The operator gets a new login link from the server's output at its start.</p></body></html>
`))

// login exchanges a code for the session cookie. A HEAD, such as a preview makes, uses nothing up.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	cookie, err := s.Sessions.Login(r, r.URL.Query().Get("code"))
	if err != nil {
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			return err
		}
		p := problemOf(err)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(p.row().status)
		return signInFailed.Execute(w, struct{ Title, Detail string }{p.row().title, p.Detail})
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	cookie, err := s.Sessions.Logout(r)
	if cookie != nil {
		http.SetCookie(w, cookie)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	var want struct {
		Subject string `json:"subject"`
		Name    string `json:"name"`
	}
	if err := s.decode(w, r, &want); err != nil {
		return err
	}
	token, id, err := s.Tokens.Issue(r.Context(), want.Subject, want.Name)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return s.writeJSON(w, r, http.StatusOK, map[string]string{"token": token, "id": id})
}

func (s *Server) listTokens(w http.ResponseWriter, r *http.Request) error {
	list, err := s.TokenList.ListTokens(r.Context())
	if err != nil {
		return err
	}
	return s.writeJSON(w, r, http.StatusOK, list)
}

func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	parts, err := segments(r, "/api/tokens/")
	if err != nil {
		return err
	}
	if len(parts) != 1 {
		return problem("not_found", "a token has an id of one segment")
	}
	if err := s.Tokens.Revoke(r.Context(), parts[0]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
