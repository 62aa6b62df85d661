package httpapi

import (
	"bytes"
	"html/template"
	"net/http"
	"strings"
)

const errorsPath = "/api/errors"

// errorsHTML shows the table of errors, each under its code as the anchor.
var errorsHTML = template.Must(template.New("").Funcs(template.FuncMap{"ticks": ticks}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Errors</title></head>
<body><h1>Errors</h1>
<p>What an error of the HTTP API means and what to do. <code>retry</code> is <code>never</code> (change the request),
<code>now</code> (read again, then try again) or <code>after</code> (wait <code>Retry-After</code> seconds).</p>
{{range .}}<h2 id="{{.Name}}">{{.Name}}</h2>
<p><b>{{.Status}}</b>, retry: {{.Retry}}. {{.Title}}.</p>
<p>{{ticks .Help}}</p>
{{with .Extra}}<p>Members: {{ticks .}}.</p>
{{end}}{{end}}</body></html>
`))

// ticks shows what stands between backticks as code.
func ticks(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		escaped := template.HTMLEscapeString(part)
		if i%2 == 1 {
			escaped = "<code>" + escaped + "</code>"
		}
		b.WriteString(escaped)
	}
	return template.HTML(b.String()) //nolint:gosec // every part of it is escaped
}

// loadErrors makes the page of the table of errors.
func loadErrors() (asset, error) {
	type row struct {
		Name, Retry, Title, Help, Extra string
		Status                          int
	}
	rows := make([]row, len(codes))
	for i, c := range codes {
		rows[i] = row{Name: c.name, Retry: c.retry, Title: c.title, Help: c.help, Extra: c.extra, Status: c.status}
	}
	var b bytes.Buffer
	if err := errorsHTML.Execute(&b, rows); err != nil {
		return asset{}, err
	}
	return newAsset("errors.html", b.Bytes()), nil
}

func (s *Server) errors(w http.ResponseWriter, r *http.Request) error {
	s.help.serve(w, r, cacheAsk)
	return nil
}
