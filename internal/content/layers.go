package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// A collection that is passed on holds files of several nodes: its owner's, and those of nodes below it.
// Each node's lie in a folder of their own, a layer, so that what goes with a node is told by what is on
// disk and by nothing that can be configured otherwise meanwhile. A file comes to the layer of the
// deepest node on its way that is there then: what a folder held before it became a node stays its
// owner's. A path is looked for in the layers of every folder on its way, the nearest first.
//
//	{owner}/~{collection}/{base}/{file}                  of the owner
//	{owner}/~~/{collection}/{node below}/~/{file}        of a node below; {collection} names base and name
//
// "~" stands in no node path, and no collection begins with it, so that nothing else has these names.
const (
	passedDir = "~~" // in the folder of an owner
	layerDir  = "~"  // in the folder of a node below it: its files
)

// passedTree is the folder below which the layers of a collection lie.
func passedTree(c nodehub.Collection) (string, error) {
	own, err := collectionDir(node.Path(c.Address), c.Name)
	if err != nil {
		return "", err
	}
	key := c.Name
	if base := strings.Trim(c.BasePath, "/"); base != "" {
		sum := sha256.Sum256([]byte(base))
		key += "~" + hex.EncodeToString(sum[:16])
	}
	return path.Join(path.Dir(own), passedDir, key), nil
}

// spots are where a path inside a collection may lie, nearest layer first, the owner's last. For a folder
// that includes the layer of the node that the folder itself is. It fails where no file can have the path.
//
// A segment of a node path may be longer than a name in a collection. So the files of nodes below have places where
// the owner could have none: in their own layer alone, below a folder that stands for the long segment.
func (s *Service) spots(c nodehub.Collection, inside string, folder bool) ([]string, error) {
	var list []string
	own, err := diskPath(node.Path(c.Address), c.Name, c.BasePath, inside)
	if err == nil {
		list = append(list, own)
	} else if !errors.Is(err, errBadName) {
		return nil, err
	}
	segs := segmentsOf(inside)
	levels := len(segs)
	if !folder {
		levels--
	}
	if c.IsInherited && levels > 0 {
		tree, err := passedTree(c)
		if err != nil {
			return nil, err
		}
		for i := range levels {
			tree = path.Join(tree, nodeName(segs[i]))
			info, err := s.root.Lstat(tree)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !isNoFile(err) {
				return nil, err
			}
			if err != nil || !info.IsDir() {
				break
			}
			if rest := segs[i+1:]; !slices.ContainsFunc(rest, func(seg string) bool { return checkName(seg) != nil }) {
				list = append(list, path.Join(append([]string{tree, layerDir}, rest...)...))
			}
		}
	}
	if own == "" {
		slices.Reverse(list)
		if len(list) == 0 {
			return nil, errBadName
		}
		return list, nil
	}
	slices.Reverse(list[1:])
	return append(list[1:], own), nil
}

// home is where a file comes to lie: in the layer of the deepest node on its way that is there now.
func (s *Service) home(ctx context.Context, c nodehub.Collection, inside string) (string, error) {
	own, bad := diskPath(node.Path(c.Address), c.Name, c.BasePath, inside)
	if !c.IsInherited || folderOf(inside) == "." {
		return own, bad
	}
	owner := node.Path(c.Address)
	res, err := s.resolver.Resolve(ctx, below(owner, folderOf(inside)))
	if errors.As(err, new(*store.NotFoundError)) {
		return "", &NotFoundError{}
	}
	if err != nil {
		return "", err
	}
	if res.Node == owner || !owner.Contains(res.Node) {
		return own, bad
	}
	tree, err := passedTree(c)
	if err != nil {
		return "", err
	}
	rel := strings.TrimPrefix(string(res.Node), string(owner)+"/")
	rest := strings.TrimPrefix(inside, rel+"/")
	for seg := range strings.SplitSeq(rest, "/") {
		if err := checkName(seg); err != nil {
			return "", err
		}
	}
	return path.Join(tree, nodeDir(node.Path(rel)), layerDir, rest), nil
}

// below is the path of a folder inside a collection, as far as it can be a node's.
func below(owner node.Path, dir string) node.Path {
	for _, seg := range segmentsOf(dir) {
		next, err := owner.Join(seg)
		if err != nil {
			break
		}
		owner = next
	}
	return owner
}

func segmentsOf(inside string) []string {
	inside = strings.Trim(inside, "/")
	if inside == "" || inside == "." {
		return nil
	}
	return strings.Split(inside, "/")
}

// visible returns the first of the spots that is a file, "" where none is.
func (s *Service) visible(spots []string) string {
	for _, p := range spots {
		if info, err := s.root.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// inTheWay fails with *InTheWayError where a file can not be stored at a path: in some layer a folder has
// its name, or a file that of one of its folders.
func (s *Service) inTheWay(c nodehub.Collection, inside string, spots []string) error {
	folders := spots
	if c.IsInherited {
		tree, err := passedTree(c)
		if err != nil {
			return err
		}
		folders = append(slices.Clip(spots), path.Join(tree, nodeDir(node.Path(inside)))) // of a node, or with nodes in it
	}
	for _, p := range folders {
		if info, err := s.root.Stat(p); err == nil && info.IsDir() {
			return &InTheWayError{Name: path.Base(inside), Dir: true}
		}
	}
	for _, p := range spots {
		if err := s.wayTo(path.Dir(p)); err != nil {
			return placeError(inside, false, err)
		}
	}
	return nil
}

// holdsFiles tells whether there is a file in a folder, however deep.
func (s *Service) holdsFiles(dir string) (bool, error) {
	list, err := s.entries(dir)
	if errors.Is(err, fs.ErrNotExist) || err != nil && isNoFile(err) {
		return false, nil
	}
	for _, d := range list {
		if err != nil || !d.IsDir() {
			break
		}
		var found bool
		if found, err = s.holdsFiles(path.Join(dir, d.Name())); found {
			return true, err
		}
	}
	return slices.ContainsFunc(list, func(d fs.DirEntry) bool { return !d.IsDir() }), err
}
