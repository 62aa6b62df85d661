// Command pocketbase serves one PocketBase with a collection "items" that everybody may write: a peer
// for the bench. It is a module of its own, so that the bench runs without it.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
)

func main() {
	if err := run(os.Args[1], len(os.Args) > 2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves on a free port, prints its address, and ends with the process. With durable, a commit is
// synced before it is acknowledged, which is not PocketBase's default.
func run(dir string, durable bool) error {
	config := pocketbase.Config{DefaultDataDir: dir, HideStartBanner: true}
	if durable {
		config.DBConnect = func(file string) (*dbx.DB, error) {
			return dbx.Open("sqlite", file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-16000)")
		}
	}
	app := pocketbase.NewWithConfig(config)
	if err := app.Bootstrap(); err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	c := core.NewBaseCollection("items")
	everybody := ""
	c.CreateRule = &everybody
	c.Fields.Add(&core.NumberField{Name: "n"}, &core.TextField{Name: "text", Max: 5000})
	if err := app.Save(c); err != nil {
		return err
	}
	app.OnServe().Bind(&hook.Handler[*core.ServeEvent]{Priority: 1000, Func: func(e *core.ServeEvent) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		handler, err := e.Router.BuildMux()
		if err != nil {
			return err
		}
		fmt.Printf("listening on http://%s\n", l.Addr())
		return http.Serve(l, handler)
	}})
	return apis.Serve(app, apis.ServeConfig{HttpAddr: "127.0.0.1:0"})
}
