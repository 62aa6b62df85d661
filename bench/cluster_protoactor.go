package main

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// startProto starts an actor system that others reach; its settings are the default ones.
func startProto(secure *tls.Config) *actor.ActorSystem {
	system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
	var options []remote.ConfigOption
	if secure != nil {
		creds := credentials.NewTLS(secure)
		options = append(options, remote.WithServerOptions(grpc.Creds(creds)), remote.WithDialOptions(grpc.WithTransportCredentials(creds)))
	}
	remote.NewRemote(system, remote.Configure("127.0.0.1", 0, options...)).Start()
	return system
}

const protoName = "echo"

func protoRole(args []string) error {
	secure, err := securityOf(args)
	if err != nil {
		return err
	}
	system := startProto(secure)
	props := actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(*wrapperspb.BytesValue); ok {
			c.Respond(m)
		}
	})
	if _, err := system.Root.SpawnNamed(props, protoName); err != nil {
		return err
	}
	return alone(system.Address())
}

func dialProto(server *child, secure *tls.Config) (*subject, error) {
	system := startProto(secure)
	pid := actor.NewPID(server.first, protoName)
	ask := func(body []byte) error {
		v, err := system.Root.RequestFuture(pid, &wrapperspb.BytesValue{Value: body}, 10*time.Second).Result()
		if err != nil {
			return err
		}
		m, ok := v.(*wrapperspb.BytesValue)
		if !ok {
			return fmt.Errorf("the answer is a %T", v)
		}
		return whole(m.Value, body)
	}
	return &subject{close: system.Shutdown, caller: func(int) func([]byte) error { return ask }}, nil
}
