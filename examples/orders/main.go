// Command orders embeds a mesh: a node type with a typed handler, asked by path, and watched.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/hubmesh/hubmesh"
)

type ship struct{ Carrier string }
type shipped struct{ Order, Carrier string }

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	shipOrder := hubmesh.Define[ship, shipped]("orders/ship")
	order := hubmesh.Type("Order")
	hubmesh.Handle(order, shipOrder, func(ctx context.Context, n *hubmesh.This, req *ship) (*shipped, error) {
		_, err := n.Patch(ctx, map[string]any{"content": map[string]any{"status": "shipped", "carrier": req.Carrier}})
		return &shipped{Order: n.Node().Path.ID(), Carrier: req.Carrier}, err
	})

	mesh, err := hubmesh.New(hubmesh.Options{Types: []*hubmesh.NodeType{order}})
	if err != nil {
		return err
	}
	defer mesh.Close(ctx)
	ctx = hubmesh.AsSystem(ctx)
	if _, err := mesh.Create(ctx, "shop", hubmesh.Space, map[string]any{}); err != nil {
		return err
	}
	if _, err := mesh.Create(ctx, "shop/o-1", "Order", map[string]any{"status": "open"}); err != nil {
		return err
	}

	watch, err := mesh.Watch(ctx, "shop/o-1", 0)
	if err != nil {
		return err
	}
	defer watch.Close()
	first, err := watch.Next(ctx)
	if err != nil {
		return err
	}
	fmt.Println("watching version", first.Version, first.Node.Content)

	answer, err := shipOrder.Ask(ctx, mesh, "shop/o-1", &ship{Carrier: "post"})
	if err != nil {
		return err
	}
	fmt.Println(answer.Order, "goes by", answer.Carrier)

	next, err := watch.Next(ctx)
	if err != nil {
		return err
	}
	fmt.Println("version", next.Version, "builds on", next.BasedOn)
	return nil
}
