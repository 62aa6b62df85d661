package httpapi

import "testing"

// CR-2, issue 5: an operator needs to see the cluster most while its database is away
func TestWhileNobodyCanBeDeterminedAnAdminWhoWasKnownIsToldWhatGoesOnAndNothingElse(t *testing.T) {
	m := newMesh(doc("acme", 1))
	m.unsure, m.was = true, map[string]bool{"root": true, "bob": false}
	_, base := serve(t, m)
	as := func(subject string) []string { return []string{"Authorization", "Bearer " + subject} }
	runAll(t, base, []scenario{
		{"the cluster, to an Admin who was known", "GET", "/api/cluster", as("root"), "", 200, []string{`"cluster":true`}},
		{"what is observed of an address", "GET", "/api/why/acme", as("root"), "", 200, nil},
		{"recent lapses", "GET", "/api/lapses", as("root"), "", 200, nil},
		{"the cluster, to who was known and no Admin", "GET", "/api/cluster", as("bob"), "", 503, []string{`"code":"undetermined"`}},
		{"the cluster, to who was not known", "GET", "/api/cluster", as("eve"), "", 503, []string{`"code":"unavailable"`}},
		{"the cluster, to a token that is no good", "GET", "/api/cluster", as("wrong"), "", 401, nil},
		{"a node", "GET", "/api/nodes/acme", as("root"), "", 503, []string{`"code":"unavailable"`}},
		{"another operation of an Admin", "GET", "/api/tokens", as("root"), "", 503, []string{`"code":"unavailable"`}},
	})
}
