package httpapi

import (
	"net/http"
	"sort"
	"strconv"
	"strings"
)

// object is a JSON object of the document.
type object = map[string]any

// document is the OpenAPI 3.1 document, made from the tables of routes, schemas and codes.
func document(version string) object {
	paths := object{}
	for i := range operations {
		op := &operations[i]
		item, ok := paths[op.path].(object)
		if !ok {
			item = object{}
			paths[op.path] = item
			if params := pathParams(op.path); len(params) > 0 {
				item["parameters"] = params
			}
		}
		item[strings.ToLower(op.method)] = op.document()
	}
	if version == "" {
		version = "0"
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "hubmesh", "version": version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The HTTP API of a hubmesh process. Paths of nodes keep their slashes; each segment is percent-encoded once.",
		},
		"paths": paths,
		"tags":  []object{{"name": "nodes"}, {"name": "live"}, {"name": "files"}, {"name": "operation"}},
		"components": object{
			"schemas": schemas(),
			"securitySchemes": object{
				"token":   object{"type": "http", "scheme": "bearer"},
				"session": object{"type": "apiKey", "in": "cookie", "name": "hubmesh_session"},
			},
		},
	}
}

// pathParams describes the parameters of a path. A node path is one parameter that keeps its slashes,
// which OpenAPI can not say; the description does.
func pathParams(path string) []object {
	help := map[string]string{
		"path": "a node path; slashes separate segments and are not encoded", "node": "a node path; slashes are not encoded",
		"address": "a node path or a process address; slashes are not encoded", "file": "a path in the collection; slashes are not encoded",
		"collection": "the name of a collection", "name": "the name of an icon", "id": "an id",
	}
	var params []object
	for rest := path; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			return params
		}
		name, tail, _ := strings.Cut(after, "}")
		params = append(params, object{"name": name, "in": "path", "required": true, "description": help[name], "schema": object{"type": "string"}})
		rest = tail
	}
}

func (op *operation) document() object {
	doc := object{"operationId": op.id, "summary": op.summary, "tags": []string{op.tag}, "responses": op.responses()}
	if len(op.params) > 0 {
		params := make([]object, len(op.params))
		for i, p := range op.params {
			schema := object{"type": p.kind}
			if p.kind == "array" {
				schema["items"] = object{"type": "string"}
			}
			params[i] = object{"name": p.name, "in": p.in, "description": p.help, "schema": schema}
		}
		doc["parameters"] = params
	}
	if op.body != "" {
		media := op.bodies
		if media == nil {
			media = []string{mediaJSON}
		}
		content := object{}
		for _, m := range media {
			content[m] = object{"schema": reference(op.body)}
		}
		doc["requestBody"] = object{"required": true, "content": content}
	}
	if op.open {
		doc["security"] = []object{}
	} else {
		doc["security"] = []object{{}, {"token": []string{}}, {"session": []string{}}}
	}
	return doc
}

func reference(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }

func (op *operation) responses() object {
	all := object{}
	for _, a := range op.answers {
		response := object{"description": a.help}
		switch {
		case a.schema != "":
			response["content"] = object{mediaJSON: object{"schema": reference(a.schema)}}
		case a.media != "":
			response["content"] = object{a.media: object{"schema": object{"type": "string"}}}
		}
		all[strconv.Itoa(a.status)] = response
	}
	for status, names := range op.problems() {
		key := strconv.Itoa(status)
		if _, taken := all[key]; taken {
			continue // such as the 503 of /ready, which is no problem
		}
		all[key] = object{
			"description": strings.Join(names, ", "),
			"content":     object{"application/problem+json": object{"schema": reference("Problem")}},
		}
	}
	return all
}

// problems groups the codes of an operation by status, those of every route included.
func (op *operation) problems() map[int][]string {
	names := map[string]bool{"internal": true}
	for _, name := range op.codes {
		names[name] = true
	}
	if !op.open && !op.degrades {
		names["unauthenticated"], names["rate_limited"], names["unavailable"] = true, true, true
	}
	if op.body != "" {
		names["body_timeout"] = true
	}
	byStatus := map[int][]string{}
	for name := range names {
		status := codeByName[name].status
		byStatus[status] = append(byStatus[status], name)
	}
	for _, list := range byStatus {
		sort.Strings(list)
	}
	return byStatus
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", cacheAsk)
	begin(w, http.StatusOK)
	inChunks(w, s.document) // one for all
	return nil
}
