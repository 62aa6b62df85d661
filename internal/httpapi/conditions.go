package httpapi

import (
	"net/http"
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
