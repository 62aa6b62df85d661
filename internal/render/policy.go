package render

import (
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

var (
	local    = regexp.MustCompile(`^url\(#[\w.-]+\)$`)
	paint    = regexp.MustCompile(`^(none|currentColor|currentcolor|inherit|transparent|context-stroke|context-fill|[a-zA-Z]+|#[0-9a-fA-F]{3,8}|(rgb|rgba|hsl|hsla)\([\d\s.,%/]+\)|url\(#[\w.-]+\))$`)
	numbers  = regexp.MustCompile(`^[-+\d\s.,eE%]+(px|em|rem|pt)?$`)
	word     = regexp.MustCompile(`^[\w\s.,#'"%()+-]*$`)
	pathData = regexp.MustCompile(`^[-+\d\s.,eEmMzZlLhHvVcCsSqQtTaA]*$`)
	class    = regexp.MustCompile(`^[\w\s:-]*$`)
)

// drawing are the elements of SVG that draw; none runs, links, loads or embeds.
var drawing = []string{
	"svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "defs", "marker",
	"lineargradient", "radialgradient", "stop", "title", "desc", "clippath", "pattern", "symbol",
}

// styles are the properties that a document may set: none takes it out of its own place on the page.
var styles = []string{
	"color", "background", "background-color", "border", "border-top", "border-bottom", "border-left", "border-right", "border-radius",
	"border-color", "border-width", "border-style", "border-collapse", "padding", "padding-top", "padding-bottom", "padding-left", "padding-right",
	"margin", "margin-top", "margin-bottom", "margin-left", "margin-right", "font-size", "font-weight", "font-style", "font-family",
	"text-align", "text-decoration", "text-transform", "letter-spacing", "line-height", "white-space", "opacity", "display", "flex", "flex-direction",
	"flex-wrap", "gap", "grid-template-columns", "align-items", "justify-content", "width", "max-width", "min-width", "height", "max-height",
	"min-height", "box-shadow", "overflow", "overflow-x", "vertical-align", "list-style", "fill", "stroke", "stroke-width", "stroke-dasharray",
	"text-anchor", "dominant-baseline",
}

// policy is what may stay of a rendered document.
func policy() *bluemonday.Policy {
	p := bluemonday.UGCPolicy()
	p.RequireNoFollowOnLinks(false)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	p.AllowAttrs("class").Matching(class).Globally()
	p.AllowAttrs("id").Matching(regexp.MustCompile(`^[\w.:-]+$`)).Globally()
	p.AllowAttrs("type", "checked", "disabled").OnElements("input") // task lists
	p.AllowAttrs("alt").OnElements("img")                           // any text: the policy above drops one with a colon or a dash
	p.AllowAttrs("title").Globally()
	p.AllowElements("details", "summary", "figure", "figcaption", "mark", "kbd", "section")
	p.AllowAttrs("open").OnElements("details")
	p.AllowAttrs("align").Matching(word).OnElements("td", "th", "div", "p")
	p.AllowStyles(styles...).MatchingHandler(harmless).Globally()

	p.AllowElements(drawing...)
	on := func(re *regexp.Regexp, names ...string) { p.AllowAttrs(names...).Matching(re).OnElements(drawing...) }
	on(numbers, "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "width", "height", "dx", "dy", "offset", "opacity", "stroke-width",
		"stroke-opacity", "fill-opacity", "stop-opacity", "stroke-dasharray", "stroke-dashoffset", "points", "viewbox", "refx", "refy", "markerwidth",
		"markerheight", "font-size", "letter-spacing", "textlength")
	on(paint, "fill", "stroke", "stop-color", "color")
	on(local, "marker-end", "marker-start", "marker-mid", "clip-path")
	on(pathData, "d")
	on(word, "transform", "gradienttransform", "text-anchor", "dominant-baseline", "font-family", "font-weight", "font-style", "stroke-linecap",
		"stroke-linejoin", "orient", "markerunits", "gradientunits", "patternunits", "fill-rule", "clip-rule", "preserveaspectratio", "role", "aria-label",
		"aria-hidden", "xmlns", "alignment-baseline", "text-decoration")
	p.AllowAttrs("xmlns").Matching(regexp.MustCompile(`^http://www\.w3\.org/2000/svg$`)).OnElements("svg")
	return p
}

// harmless refuses style values that load something or escape into another property.
func harmless(value string) bool {
	v := strings.ToLower(value)
	for _, bad := range []string{"url(", "expression", "javascript", "\\", "@", "/*", "<", "fixed", "sticky", "absolute", "image(", "image-set"} {
		if strings.Contains(v, bad) {
			return false
		}
	}
	return len(v) < 400
}
