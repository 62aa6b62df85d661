// Package lifecycle holds what lives and ends in order: run levels, backoff, and groups of services.
//
// It owns the strictly ordered run levels of a hub (messaging.md §1.7), retry delays with full jitter
// and a cap, and [Group], which starts services in order and stops them in reverse. Standard library
// only; every package above may use it.
package lifecycle
