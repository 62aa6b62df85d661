package content

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Condition makes a change of a file depend on the file that is there (RFC 9110 §13.1). Tags are quoted as in
// headers, and "*" stands for any file. The zero value is no condition.
type Condition struct {
	Match     []string  // If-Match: the file is there and has one of these tags
	NoneMatch []string  // If-None-Match: there is no file with one of these tags
	Unchanged time.Time // If-Unmodified-Since, where there is no Match: the file is not newer
}

func (c Condition) isZero() bool {
	return len(c.Match) == 0 && len(c.NoneMatch) == 0 && c.Unchanged.IsZero()
}

// wantsFile tells whether the condition can not hold where there is no file.
func (c Condition) wantsFile() bool { return len(c.Match) > 0 }

// wantsTag tells whether the condition is about the tag of the file.
func (c Condition) wantsTag() bool {
	tag := func(tag string) bool { return tag != "*" }
	return slices.ContainsFunc(c.Match, tag) || slices.ContainsFunc(c.NoneMatch, tag)
}

// holds tells whether the condition holds for a file with a tag, "" for one that has none. Match compares
// strongly, NoneMatch weakly; modified counts whole seconds, as its header does.
func (c Condition) holds(there bool, tag string, modified time.Time) error {
	has := func(list []string, weak bool) bool {
		return there && slices.ContainsFunc(list, func(want string) bool {
			if weak {
				want = strings.TrimPrefix(want, "W/")
			}
			return want == "*" || tag != "" && want == tag
		})
	}
	switch {
	case len(c.Match) > 0 && !there:
		return &ConditionError{Reason: "If-Match names a file, and there is none, or it is not yours to read"}
	case len(c.Match) > 0 && !has(c.Match, false) && tag == "":
		return &ConditionError{Reason: "If-Match names another file: the one that is there is too large to have an ETag"}
	case len(c.Match) > 0 && !has(c.Match, false):
		return &ConditionError{Reason: "the file is not the one that If-Match names"}
	case len(c.Match) == 0 && !c.Unchanged.IsZero() && there && modified.Truncate(time.Second).After(c.Unchanged):
		return &ConditionError{Reason: "the file was changed after the time that If-Unmodified-Since names"}
	case has(c.NoneMatch, true):
		return &ConditionError{Reason: "there is the file that If-None-Match excludes"}
	}
	return nil
}

// ConditionError refuses a change whose condition does not hold. Nothing was changed.
type ConditionError struct{ Reason string }

func (e *ConditionError) Error() string { return e.Reason }

// standing is the file that is seen at a path at some moment. It is kept open: as long as it is, no other file can
// be taken for it. Close it.
type standing struct {
	name string // "" where there is none
	file *os.File
	info fs.FileInfo
}

func (st *standing) close() {
	if st.file != nil {
		st.file.Close()
	}
}

// met returns the file that is seen at one of the spots, for which the condition holds, or *ConditionError.
func (s *Service) met(when Condition, spots []string) (*standing, error) {
	st := &standing{}
	var err error
	st.file, st.name, st.info, err = s.openFirst(spots)
	if err != nil && !errors.As(err, new(*NotFoundError)) {
		return nil, err
	}
	tag, modified := "", time.Time{}
	if st.file != nil {
		modified = st.info.ModTime()
		if when.wantsTag() && st.info.Size() < BufferLimit {
			if tag, err = s.index.etag(st.name, st.info, st.file); err != nil {
				st.close()
				return nil, err
			}
		}
	}
	if err := when.holds(st.file != nil, tag, modified); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// stands tells whether the file that is seen at one of the spots is still the one. It is asked where no file can
// come or go.
func (s *Service) stands(st *standing, spots []string) bool {
	for _, p := range spots {
		info, err := s.root.Stat(p)
		if err == nil && info.Mode().IsRegular() {
			return p == st.name && os.SameFile(info, st.info) && info.Size() == st.info.Size() && info.ModTime().Equal(st.info.ModTime())
		}
	}
	return st.file == nil
}

// whenMet changes a file at a moment at which the condition holds. Reading a tag takes time, so the condition is
// asked before, and where another file stands there in the turn of the change, it is asked again. Each repetition
// means that somebody else has changed it. Spots is where the file may lie at a moment; turn runs its argument where
// no file comes or goes.
func (s *Service) whenMet(when Condition, spots func() ([]string, error), turn func(func() error) error, change func() error) error {
	if when.isZero() {
		return turn(change)
	}
	for {
		at, err := spots()
		if err != nil {
			return err
		}
		st, err := s.met(when, at)
		if err != nil {
			return err
		}
		if s.checked != nil {
			s.checked()
		}
		again := false
		err = turn(func() error {
			now, err := spots()
			if again = err == nil && !s.stands(st, now); err != nil || again {
				return err
			}
			if s.changing != nil {
				s.changing()
			}
			return change()
		})
		st.close()
		if !again {
			return err
		}
	}
}
