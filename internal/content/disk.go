package content

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"path"
	"strings"
	"syscall"

	"github.com/hubmesh/hubmesh/internal/node"
)

// maxSegment is the longest name of a file or folder of a collection, in bytes. Common file systems take 255.
const maxSegment = 200

// hashedName is the length of a folder's name that stands for a segment which is too long for one.
const hashedName = len("~h") + 2*sha256.Size

// errBadName refuses a file name.
var errBadName = errors.New("content: not a file name")

// diskPath is where a file of a collection lies below the root. "~" cannot stand in a node path, so a
// collection never meets the folder of a node below.
func diskPath(owner node.Path, collection, base, file string) (string, error) {
	dir, err := collectionDir(owner, collection)
	if err != nil {
		return "", err
	}
	for _, part := range []string{base, file} {
		if part == "" {
			continue
		}
		for seg := range strings.SplitSeq(strings.Trim(part, "/"), "/") {
			if err := checkName(seg); err != nil {
				return "", err
			}
			dir = path.Join(dir, seg)
		}
	}
	return dir, nil
}

// collectionDir is the folder of a collection.
func collectionDir(owner node.Path, collection string) (string, error) {
	if err := checkName(collection); err != nil {
		return "", err
	}
	if collection[0] == '~' || len("~"+collection) == hashedName && collection[0] == 'h' && isHex(collection[1:]) {
		return "", errBadName // the layers of nodes below, or the folder of a long segment, lie there
	}
	return path.Join(nodeDir(owner), "~"+collection), nil
}

// nodeDir is the folder of a node: of its collections, and of the nodes below it.
func nodeDir(at node.Path) string {
	var parts []string
	for seg := range at.Segments() {
		parts = append(parts, nodeName(seg))
	}
	return path.Join(parts...)
}

// nodeName is the folder of a segment of a node path, which may be longer than a file name.
func nodeName(seg string) string {
	if len(seg) <= maxSegment {
		return seg
	}
	sum := sha256.Sum256([]byte(seg))
	return "~h" + hex.EncodeToString(sum[:])
}

// isHashed tells whether a folder stands for a segment that is too long for a file name.
func isHashed(name string) bool {
	return len(name) == hashedName && strings.HasPrefix(name, "~h")
}

func isHex(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil
}

func checkName(seg string) error {
	if seg == "" || seg == "." || seg == ".." || len(seg) > maxSegment || strings.ContainsAny(seg, "/\\\x00") {
		return errBadName
	}
	return nil
}

func folderOf(file string) string { return path.Dir(file) }

func lastSegment(file string) string { return path.Base(file) }

// isNoFile tells whether an error means that no such file can exist: a segment is a file itself, or a
// link leads out of the root.
func isNoFile(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.ELOOP) || strings.Contains(err.Error(), "path escapes from parent")
}

// URL is where a file of a collection is served.
func URL(at node.Path, collection, file string) string {
	u := url.URL{Path: "/api/content/" + string(at) + "/" + strings.ReplaceAll(collection, "/", "~") + "/" + file}
	return u.EscapedPath()
}
