package httpapi

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// etag is the tag of a version.
func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// tags splits the value of If-Match or If-None-Match.
func tags(values []string) []string {
	var list []string
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				list = append(list, tag)
			}
		}
	}
	return list
}

// current tells whether a GET may be answered with 304: the comparison is weak (RFC 9110 §13.1.2).
func current(r *http.Request, version int64) bool {
	for _, tag := range tags(r.Header.Values("If-None-Match")) {
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag(version) {
			return true
		}
	}
	return false
}

// condition reads the headers that make a write conditional. A tag that can not be one of ours never
// matches, so it fails at once.
func condition(r *http.Request) (Condition, error) {
	if none := tags(r.Header.Values("If-None-Match")); len(none) > 0 {
		if len(none) != 1 || none[0] != "*" {
			return Condition{}, problem("bad_request", "If-None-Match of a write is '*' or absent").with("field", "If-None-Match")
		}
		return Condition{Absent: true}, nil
	}
	match := tags(r.Header.Values("If-Match"))
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if sent := r.Header.Values(name); len(sent) > 0 && len(tags(sent)) == 0 {
			return Condition{}, problem("bad_request", name+" is empty: a write that is to be conditional would be done whatever is stored").with("field", name)
		}
	}
	switch {
	case len(match) == 0:
		return Condition{}, nil
	case len(match) == 1 && match[0] == "*":
		return Condition{Present: true}, nil
	case len(match) > 1:
		return Condition{}, problem("bad_request", `If-Match of a write is one tag, such as "7", or *`).with("field", "If-Match")
	}
	version, err := strconv.ParseInt(strings.Trim(match[0], `"`), 10, 64)
	if err != nil || version <= 0 || etag(version) != match[0] {
		return Condition{}, problem("stale", "If-Match names no version of this node")
	}
	return Condition{Version: version}, nil
}

// fileCondition reads the headers that make a change of a file conditional (RFC 9110 §13.1).
func fileCondition(r *http.Request) (c FileCondition, err error) {
	for _, list := range []struct {
		name string
		to   *[]string
	}{{"If-Match", &c.Match}, {"If-None-Match", &c.NoneMatch}} {
		sent := r.Header.Values(list.name)
		if *list.to, err = fileTags(list.name, sent); err != nil {
			return FileCondition{}, err
		}
	}
	if since := r.Header.Get("If-Unmodified-Since"); since != "" && len(c.Match) == 0 {
		if at, err := http.ParseTime(since); err == nil { // another is ignored (§13.1.4)
			c.Unchanged = at
		}
	}
	return c, nil
}

// fileTag is an entity tag (RFC 9110 §8.8.3).
var fileTag = regexp.MustCompile(`^(?:W/)?"[^"\x00-\x20\x7f]*"`)

// fileTags reads a list of entity tags, or "*". A tag may hold a comma.
func fileTags(name string, sent []string) (list []string, err error) {
	if len(sent) == 0 {
		return nil, nil
	}
	rest := strings.TrimSpace(strings.Join(sent, ","))
	if rest == "*" {
		return []string{"*"}, nil
	}
	for rest = strings.Trim(rest, ", \t"); rest != ""; rest = strings.TrimLeft(rest, ", \t") {
		tag := fileTag.FindString(rest)
		after := strings.TrimLeft(rest[len(tag):], " \t")
		if tag == "" || after != "" && after[0] != ',' {
			return nil, problem("bad_request", name+` is a list of entity tags, each in quotation marks as ETag gives it, or *`).with("field", name)
		}
		list, rest = append(list, tag), after
	}
	if list == nil {
		return nil, problem("bad_request", name+" is empty: a change that is to be conditional would be done whatever is there").with("field", name)
	}
	return list, nil
}

// unmetFile turns the refusal of a change that asks for a file into 412 where there is none, or none that the
// caller may know of: the two are answered alike.
func unmetFile(c FileCondition, err error) error {
	if err == nil || len(c.Match) == 0 || problemOf(err).Code != "not_found" {
		return err
	}
	return problem("stale", "If-Match names a file, and there is none, or it is not yours to read")
}

// part refuses a body that is a part of what it is for (RFC 9110 §14.5): stored, it would be taken for the whole.
func part(r *http.Request) error {
	if r.Header.Get("Content-Range") != "" {
		return problem("bad_request", "Content-Range: a part can not be stored; send the whole without this header").with("field", "Content-Range")
	}
	return nil
}

// unmet turns the refusal of a conditional write into 412.
func unmet(cond Condition, err error) error {
	if err == nil || cond == (Condition{}) {
		return err
	}
	p := problemOf(err)
	switch {
	case p.Code == "conflict":
	case p.Code == "not_found" && !cond.Absent: // RFC 9110 §13.1.1: If-Match never holds where nothing is
		p = problem("stale", "If-Match names a node, and there is none, or it is not yours to read")
	case p.Code == "exists" && cond.Absent:
		p = p.with("actual", p.Members["version"])
	default:
		return err
	}
	stale := *p
	stale.Code = "stale"
	return &stale
}
