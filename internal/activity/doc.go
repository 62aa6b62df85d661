// Package activity runs long work as a live node: anybody who may read it sees its progress, and
// whoever may write it can ask it to stop.
//
// An activity is the node {owner}/_Activity/{id}. Callers patch only its requestedStatus; the [Runner]
// alone writes its status, as the infrastructure, and only forward: a terminal status stays. Work runs
// off every turn, its progress lands while it runs, every way out finishes it, and one that was Running
// when its process ended is driven to Failed at the next start. Rules: edge.md §4.
package activity
