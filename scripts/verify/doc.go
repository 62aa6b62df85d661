// Command verify is `make test`: everything that CI runs, in phases, each with its time.
//
// It first makes sure of the tools that the tests need and that Go does not bring (gcc, Node, npm, the
// PostgreSQL server, Chromium): what is missing is installed with apt-get where that is there and
// allowed, and named otherwise. A Node that is too old for the page's build is set beside the system's,
// under .cache. Phases run one after the other, as each uses all cores; a phase that fails does not
// keep the later ones from running, so that one run shows everything.
//
// -only takes names of phases or of groups: quick, go, web, web-build.
package main
