package main

import "context"

func Example() {
	if err := run(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// watching version 1 {"status":"open"}
	// o-1 goes by post
	// version 2 builds on 1
}
