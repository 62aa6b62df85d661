package node

// MergePatch applies an RFC 7396 merge patch to target and returns the result; both stay as they
// are. Members keep their order, new ones follow. Numbers are copied as they are written. The error
// is *[ContentError] for text that is not JSON, which only [RawContent] can hold. Bounding the result
// is the caller's part; its depth is at most that of the deeper of the two.
func MergePatch(target, patch Content) (Content, error) {
	p, err := parseTree(patch)
	if err != nil {
		return Content{}, err
	}
	if !p.isObject() {
		return patch, nil
	}
	t, err := parseTree(target)
	if err != nil {
		return Content{}, err
	}
	return RawContent(string(appendMerged(make([]byte, 0, len(t.raw)+len(p.raw)), &t, &p))), nil
}

// appendMerged writes target with patch applied; target is nil where there is none.
func appendMerged(dst []byte, target, patch *value) []byte {
	if !patch.isObject() {
		return append(dst, patch.raw...)
	}
	empty := value{raw: "{}"}
	if target == nil || !target.isObject() {
		target = &empty
	}
	open := len(dst)
	dst = append(dst, '{')
	add := func(key string, target, patch *value) {
		if len(dst) > open+1 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, key), ':')
		if patch == nil {
			dst = append(dst, target.raw...)
		} else {
			dst = appendMerged(dst, target, patch)
		}
	}
	inPatch, inTarget := patch.index(), target.index()
	for i, key := range target.keys {
		if change := inPatch(key); change == nil || !change.isNull() {
			add(key, &target.parts[i], change)
		}
	}
	for i, key := range patch.keys {
		if change := &patch.parts[i]; !change.isNull() && inTarget(key) == nil {
			add(key, nil, change)
		}
	}
	return append(dst, '}')
}

// Diff returns the merge patch that turns from into to: MergePatch(from, patch) equals to in the
// sense of [Equal]. ok is false where no merge patch can say the change, because an object of to
// gains a member that is null; then the whole value has to be sent. Without a change between objects
// the patch is {}.
func Diff(from, to Content) (patch Content, ok bool) {
	f, err := parseTree(from)
	if err != nil {
		return Content{}, false
	}
	t, err := parseTree(to)
	if err != nil {
		return Content{}, false
	}
	dst, ok := appendDiff(nil, &f, &t)
	if !ok {
		return Content{}, false
	}
	return RawContent(string(dst)), true
}

func appendDiff(dst []byte, from, to *value) ([]byte, bool) {
	if !to.isObject() || !from.isObject() {
		return append(dst, to.raw...), !hasNullMember(to)
	}
	open := len(dst)
	dst = append(dst, '{')
	name := func(key string) {
		if len(dst) > open+1 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, key), ':')
	}
	inFrom, inTo := from.index(), to.index()
	for _, key := range from.keys {
		if inTo(key) == nil {
			name(key)
			dst = append(dst, "null"...)
		}
	}
	for i, key := range to.keys {
		was, is := inFrom(key), &to.parts[i]
		if was != nil && equalValues(was, is) {
			continue
		}
		if is.isNull() {
			return dst, false
		}
		name(key)
		if was == nil {
			was = &value{raw: "null"}
		}
		var ok bool
		if dst, ok = appendDiff(dst, was, is); !ok {
			return dst, false
		}
	}
	return append(dst, '}'), true
}

// hasNullMember tells whether a merge patch would lose a member of v. Arrays are taken as they are.
func hasNullMember(v *value) bool {
	if !v.isObject() {
		return false
	}
	for i := range v.parts {
		if v.parts[i].isNull() || hasNullMember(&v.parts[i]) {
			return true
		}
	}
	return false
}
