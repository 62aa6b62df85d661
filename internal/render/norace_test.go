//go:build !race

package render

const slow = false
