package nodehub

// Collection is the configuration of a content collection as its owner tells it. Every field survives
// the wire; an absent boolean is false (edge.md CR-10).
type Collection struct {
	Name        string            `json:"name"`
	SourceType  string            `json:"sourceType"` // "store": the server's own content folder
	DisplayName string            `json:"displayName,omitempty"`
	BasePath    string            `json:"basePath,omitempty"`
	Order       int               `json:"order,omitempty"`
	Address     string            `json:"address,omitempty"`    // the node that owns it
	IsStatic    bool              `json:"isStatic,omitempty"`   // published over HTTP (CR-8)
	IsEditable  bool              `json:"isEditable,omitempty"` // uploads are taken
	IsInherited bool              `json:"isInherited,omitempty"`
	Settings    map[string]string `json:"settings,omitempty"`
}
