package httpapi

// schemas are the shapes of bodies, as JSON Schema. A test compares them with what handlers write.
func schemas() object {
	text := object{"type": "string"}
	whole := object{"type": "integer", "format": "int64"}
	truth := object{"type": "boolean"}
	when := object{"type": "string", "format": "date-time"}
	list := func(items object) object { return object{"type": "array", "items": items} }
	shape := func(required []string, properties object) object {
		s := object{"type": "object", "properties": properties}
		if len(required) > 0 {
			s["required"] = required
		}
		return s
	}
	writable := object{
		"mainNode": text, "nodeType": text, "name": text, "description": text, "category": text, "icon": text,
		"order": object{"type": "integer", "format": "int32"}, "preRenderedHtml": text, "content": object{},
		"state":     object{"type": "string", "enum": []string{"New", "Transient", "Active", "Rejected", "Deleted"}},
		"desiredId": text, "excludeFromContext": list(text),
		"syncBehavior": object{"type": "string", "enum": []string{"Include", "ExcludeThisOnly", "ExcludeThisAndChildren"}},
	}
	everything := func() object {
		all := object{
			"path": text, "id": text, "namespace": text, "version": whole,
			"createdDate": when, "createdBy": text, "lastModified": when, "lastModifiedBy": text,
		}
		for name, s := range writable {
			all[name] = s
		}
		return all
	}
	node := shape(nil, everything())
	node["description"] = "Empty fields are left out. In a request the version and the stamps are ignored; what is not known is refused."
	patch := shape(nil, writable)
	patch["description"] = "An RFC 7396 merge patch: null empties a field, objects merge."
	return object{
		"Any": object{}, "Bytes": object{"type": "string", "contentMediaType": "application/octet-stream"},
		"Node": node, "NodePatch": patch,
		"NodeList": shape([]string{"nodes"}, object{"nodes": list(reference("Node"))}),
		"Outcomes": shape([]string{"results"}, object{"results": list(shape(nil, object{"path": text, "version": whole, "error": reference("Problem")}))}),
		"Deleted":  shape([]string{"deleted", "version"}, object{"deleted": whole, "version": whole, "untold": list(text)}),
		"Child": shape([]string{"path", "id", "version", "hasChildren"}, object{
			"path": text, "id": text, "name": text, "nodeType": text, "icon": text, "order": object{"type": "integer"}, "version": whole, "hasChildren": truth,
		}),
		"Children": shape([]string{"children", "next"}, object{"children": list(reference("Child")), "next": text}),
		"VersionsOrNode": object{"oneOf": []object{
			shape([]string{"versions"}, object{"versions": list(shape([]string{"version", "kind", "at", "by"}, object{
				"version": whole, "kind": object{"type": "string", "enum": []string{"created", "updated", "deleted"}}, "at": when, "by": text, "name": text,
			}))}),
			reference("Node"),
		}},
		"QueryResult": shape([]string{"nodes", "truncated"}, object{"nodes": list(reference("Node")), "truncated": truth}),
		"Rendered":    shape([]string{"path", "version", "html"}, object{"path": text, "version": whole, "html": text}),
		"Markdown":    shape([]string{"markdown"}, object{"markdown": text}),
		"HTML":        shape([]string{"html"}, object{"html": text}),
		"FileList": shape([]string{"collection", "dir", "entries"}, object{"collection": text, "dir": text, "entries": list(
			shape([]string{"name", "dir", "size"}, object{"name": text, "dir": truth, "size": whole, "modified": when, "url": text}))}),
		"FileWritten":  shape([]string{"url", "size"}, object{"url": text, "size": whole, "etag": text}),
		"Import":       shape([]string{"source"}, object{"source": text, "into": text, "content": text}),
		"Activity":     shape([]string{"activity"}, object{"activity": text}),
		"WhoAmI":       shape([]string{"subject", "name", "anonymous", "admin"}, object{"subject": text, "name": text, "anonymous": truth, "admin": truth}),
		"TokenRequest": shape([]string{"subject"}, object{"subject": text, "name": text}),
		"Token":        shape([]string{"token", "id"}, object{"token": text, "id": text}),
		"TokenList": shape([]string{"tokens"}, object{"tokens": list(shape([]string{"id", "subject", "createdAt"}, object{
			"id": text, "subject": text, "name": text, "createdAt": when, "lastUsed": when, "revoked": truth,
		}))}),
		"Cluster": shape([]string{"cluster", "askedBy", "answered", "missing", "silos"}, object{
			"cluster": truth, "askedBy": text, "observedAt": when, "answered": whole, "missing": list(text), "totals": object{"type": "object"},
			"silos":   list(shape([]string{"silo", "epoch"}, object{"silo": text, "epoch": text, "tookMs": whole, "missing": text, "status": object{"type": "object"}})),
			"process": object{"type": "object"}, "asKnown": text,
		}),
		"Alive": shape([]string{"alive"}, object{"alive": truth}),
		"Ready": shape([]string{"ready", "waiting"}, object{"ready": truth, "waiting": list(text)}),
		"Problem": shape([]string{"type", "title", "status", "detail", "code", "retry"}, object{
			"type": text, "title": text, "status": object{"type": "integer"}, "detail": text, "code": object{"type": "string", "enum": codeNames()},
			"retry": object{"type": "string", "enum": []string{retryNever, retryNow, retryAfter}}, "retryAfter": object{"type": "integer"},
		}),
	}
}

func codeNames() []string {
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = c.name
	}
	return names
}
