package activity

import (
	"context"
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// Status is where an activity stands.
type Status string

// The statuses. All but Running are terminal.
const (
	Running   Status = "Running"
	Succeeded Status = "Succeeded"
	Warning   Status = "Warning"
	Failed    Status = "Failed"
	Cancelled Status = "Cancelled"
)

// Terminal tells whether nothing comes after.
func (s Status) Terminal() bool { return s != Running && s != "" }

// worse orders the statuses that work can end with.
func worse(a, b Status) Status {
	rank := map[Status]int{Succeeded: 0, Warning: 1, Failed: 2, Cancelled: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

const (
	maxMessages  = 1000      // messages that an activity keeps; more are counted
	maxWarnings  = 500       // of them of others than errors, so that those leave room for errors
	messageBytes = 400       // of one message's text
	keptBytes    = 512 << 10 // of all messages as JSON, that of others than errors half: the node has a limit
)

// Line is one message of an activity.
type Line struct {
	Level string    `json:"level"` // info, warning or error
	Text  string    `json:"text"`
	About string    `json:"about,omitempty"` // a file or path
	At    time.Time `json:"at"`
}

// Content is the content of an activity's node.
type Content struct {
	Type            string         `json:"$type"`
	Title           string         `json:"title"`
	Status          Status         `json:"status"`
	RequestedStatus Status         `json:"requestedStatus,omitempty"`
	Message         string         `json:"message"` // what it does now
	Done            int            `json:"done"`
	Total           int            `json:"total"`
	Counts          map[string]int `json:"counts,omitempty"`
	Messages        []Line         `json:"messages,omitempty"`
	Dropped         int            `json:"dropped,omitempty"` // messages that were not kept; the last message says so
	Affected        []string       `json:"affected,omitempty"`
	Started         time.Time      `json:"started"`
	Ended           *time.Time     `json:"ended,omitempty"`
}

// OwnerError refuses a write of an activity's own fields.
type OwnerError struct{ Path node.Path }

func (e *OwnerError) Error() string {
	return fmt.Sprintf("'%s' is written by its own work; only content.requestedStatus is yours, and it may ask for Cancelled", e.Path)
}

// ProblemCode is the code of the error table.
func (e *OwnerError) ProblemCode() string { return "forbidden" }

// Validate lets callers patch requestedStatus and nothing else; it is the write check of the type.
func Validate(ctx context.Context, before *node.Node, after node.Node) error {
	if message.IdentityFrom(ctx).IsSystem() {
		return nil
	}
	if before == nil {
		return &OwnerError{Path: after.Path}
	}
	var was, is Content
	if before.Content.Decode(&was) != nil || after.Content.Decode(&is) != nil || is.RequestedStatus != Cancelled {
		return &OwnerError{Path: after.Path}
	}
	expect, err := node.MergePatch(before.Content, node.RawContent(`{"requestedStatus":"Cancelled"}`))
	if err != nil {
		return err
	}
	allowed := *before
	allowed.Content = expect
	if !allowed.SameAs(after) {
		return &OwnerError{Path: after.Path}
	}
	return nil
}
