package httpapi

import (
	"fmt"
	"net/http"
	"strings"
)

// Retry classes: what a caller can do about an error.
const (
	retryNever = "never" // change the request
	retryNow   = "now"   // read again, then try again
	retryAfter = "after" // wait, then try again
)

// code is one row of the table of errors.
type code struct {
	name   string
	status int
	retry  string
	title  string
	help   string // what it means and what to do, for docs/errors.md
	extra  string // further members, for docs/errors.md
}

// codes is the one table of errors: docs/errors.md is made from it, and a test compares them and
// docs/api.md. A code is stable; its title and help may be reworded.
var codes = []code{
	{"bad_request", http.StatusBadRequest, retryNever, "The request is not understood",
		"A parameter, header or field has a value that does not fit. The detail names it.", "`field` where one field is to blame; `collection`"},
	{"invalid_path", http.StatusBadRequest, retryNever, "The path is not a node path",
		"Segments are separated by `/` and percent-encoded once. Empty segments, `.`, `..`, backslashes, `~`, control characters and NUL are refused, and in new paths characters that are not seen, such as zero-width joiners; a path has at most 1,024 bytes. All rules stand in the page of the HTTP API.", ""},
	{"invalid_json", http.StatusBadRequest, retryNever, "The body is not the JSON that is wanted",
		"The detail says where it stops being JSON. Objects name a member once, text is UTF-8 without NUL, a content nests at most 200 levels (`--json-depth`).", "`offset`: the byte, from 0"},
	{"invalid_patch", http.StatusBadRequest, retryNever, "The merge patch does not fit a node",
		"A patch is an RFC 7396 merge patch over the writable fields of a node.", "`field`"},
	{"invalid_query", http.StatusBadRequest, retryNever, "The query can not be run",
		"See the query language. The detail says where and why.", "`offset`: the byte, from 0"},
	{"unauthenticated", http.StatusUnauthorized, retryNever, "The credential is not good",
		"The token or login code is not known, was revoked or used, or has expired. Get a new one.", ""},
	{"forbidden", http.StatusForbidden, retryNever, "Not allowed",
		"You may read this, but not do that. The detail names the permission that is missing; an Admin of the scope can grant it.", ""},
	{"not_found", http.StatusNotFound, retryNever, "Nothing here",
		"There is no such thing, or it is not yours to read: the two are answered alike.", "`dir` or `collection`: what a node that you may read does not have"},
	{"method_not_allowed", http.StatusMethodNotAllowed, retryNever, "The method is not for this route",
		"The `Allow` header lists those that are.", ""},
	{"body_timeout", http.StatusRequestTimeout, retryAfter, "The body came too slowly",
		"A JSON body comes whole within its bound, 30 seconds, and an upload at least 64 KiB at a time within 30 seconds. Nothing was done, and the connection is closed.", ""},
	{"exists", http.StatusConflict, retryNever, "There is something already",
		"A create does not replace. Use PUT or PATCH, or another path. Paths that differ in letter case only exclude each other. An upload replaces a file and never a folder, a file holds no others, and files whose collection was unpublished are not published by an upload: create its configuration again.", "`version`; `other`: the path in the way, where it differs; `collection`"},
	{"has_children", http.StatusConflict, retryNever, "The node has children",
		"Delete them first, or all at once with `?recursive`.", ""},
	{"partition_missing", http.StatusConflict, retryNever, "The partition is not there",
		"The first segment of a path is its partition. Create the space (a top-level node of type `Space`) first; one that is being deleted can be created again once it is gone.", "`partition`, `reason`"},
	{"conflict", http.StatusConflict, retryNow, "The node changed meanwhile",
		"Another write came first, again and again. Read the node and try again.", "`expected`, `actual`: versions"},
	{"stale", http.StatusPreconditionFailed, retryNow, "The condition does not hold",
		"`If-Match` names another version or file than the stored one, or `If-None-Match` met what it excludes. Read it and decide anew.", "`expected`, `actual`: versions of a node"},
	{"too_large", http.StatusRequestEntityTooLarge, retryNever, "Too large",
		"The body, the node or the upload has more bytes than allowed. The detail names the limit, which the operator can change.", ""},
	{"unsupported_media_type", http.StatusUnsupportedMediaType, retryNever, "The media type is not for this route",
		"Send JSON as `application/json`; a patch may be `application/merge-patch+json`.", ""},
	{"range_not_satisfiable", http.StatusRequestedRangeNotSatisfiable, retryNever, "The range is outside of the file",
		"`Content-Range` names the size.", ""},
	{"invalid_content", http.StatusUnprocessableEntity, retryNever, "The content does not fit its type",
		"The type's JSON Schema refuses the content, or can not be asked within the limits (see Types). The members say which part and why.", "`errors`, `nodeType`"},
	{"rate_limited", http.StatusTooManyRequests, retryAfter, "Too many attempts",
		"Too many credentials from your address were not good. Wait as long as `Retry-After` says.", ""},
	{"internal", http.StatusInternalServerError, retryNever, "A fault of the server",
		"The server's log has the details under the `request` id.", "`request`"},
	{"lapsed", http.StatusServiceUnavailable, retryAfter, "No answer in time",
		"No answer reached the reader within its budget. This is no verdict about what was asked for. The members say what was observed; `STILL STARTING` in `clause` means that the node was being started, and the next read is likely to be answered.",
		"`bound` (what was waited for), `clipped_by` (the bound that ended the wait, where it is another one), `elapsed_ms`, `target`, `reported_by` (`owner` or `caller`), `clause`; of a content read `line` (the log line), `reader` and `budget_ms`; of other requests `operation`, `progress` and `size_ms`; fewer where less is known"},
	{"starting", http.StatusServiceUnavailable, retryAfter, "Still starting",
		"The server or the node is being started.", ""},
	{"shutting_down", http.StatusServiceUnavailable, retryAfter, "Shutting down",
		"The server or the node is going down; ask again.", "`outcome`, as of `unavailable`"},
	{"unavailable", http.StatusServiceUnavailable, retryAfter, "Not available now",
		"Something that is needed for an answer is away. With `outcome` \"unknown\" the write may have happened: read to find out.", "`outcome`; `deleted` and `failed` of a deletion that stopped on its way: how many nodes went, and where it stopped"},
	{"overloaded", http.StatusServiceUnavailable, retryAfter, "Overloaded",
		"A queue is full, or there was no time or place for a part of the work. Nothing was queued and nothing was done.", ""},
	{"undetermined", http.StatusServiceUnavailable, retryAfter, "Permissions not known for the moment",
		"The access assignments are still being read, or what other processes have changed of them could not be read for five seconds. This is no denial.", ""},
	{"storage_full", http.StatusInsufficientStorage, retryAfter, "The disk is full",
		"Nothing was written. What was acknowledged before is kept. Free some space.", ""},
}

var codeByName = indexCodes()

func indexCodes() map[string]*code {
	index := make(map[string]*code, len(codes))
	for i := range codes {
		index[codes[i].name] = &codes[i]
	}
	return index
}

// errorsPage is the text of docs/errors.md.
func errorsPage() string {
	var b strings.Builder
	b.WriteString(`# Errors

Every error of the HTTP API is ` + "`application/problem+json`" + ` (RFC 9457): ` + "`type title status detail code retry`" + `, and
the further members named below. ` + "`code`" + ` is stable: decide by it, not by the text. ` + "`retry`" + ` is ` + "`never`" + ` (change the
request), ` + "`now`" + ` (read again, then try again) or ` + "`after`" + ` (wait ` + "`Retry-After`" + ` seconds, also in ` + "`retryAfter`" + `). This page is
made from the table in ` + "`internal/httpapi/codes.go`" + `.
`)
	for _, c := range codes {
		fmt.Fprintf(&b, "\n## %s\n\n**%d**, retry: %s. %s.\n\n%s\n", c.name, c.status, c.retry, c.title, c.help)
		if c.extra != "" {
			fmt.Fprintf(&b, "\nMembers: %s.\n", c.extra)
		}
	}
	return b.String()
}
