package main

import (
	"context"
	"crypto/tls"
	order "encoding/binary"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// rawCodec carries bytes as they are: cheaper than any generated message.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(b mem.BufferSlice, v any) error {
	*v.(*[]byte) = b.Materialize()
	return nil
}

var echoStream = grpc.StreamDesc{StreamName: "Echo", ClientStreams: true, ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
	for {
		var b []byte
		if err := s.RecvMsg(&b); err != nil {
			return err
		}
		if err := s.SendMsg(&b); err != nil {
			return err
		}
	}
}}

func grpcRole(args []string) error {
	secure, err := securityOf(args)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	options := []grpc.ServerOption{grpc.ForceServerCodecV2(rawCodec{})}
	if secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	s := grpc.NewServer(options...)
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "bench", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{echoStream}}, nil)
	go func() { _ = s.Serve(l) }()
	return alone(l.Addr().String())
}

// dialGRPC asks on one bidirectional stream, with a number in front of each message.
func dialGRPC(server *child, secure *tls.Config) (*subject, error) {
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	conn, err := grpc.NewClient(server.first, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(context.Background(), &echoStream, "/bench/Echo", grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return nil, err
	}
	var wait waiters
	wait.init()
	go func() {
		for {
			var b []byte
			if stream.RecvMsg(&b) != nil || len(b) < 8 {
				return
			}
			wait.answer(order.BigEndian.Uint64(b), b[8:])
		}
	}()
	var sending sync.Mutex // a stream has one sender at a time
	return &subject{close: func() { conn.Close() }, caller: func(i int) func([]byte) error {
		return wait.caller(i, func(id uint64, body []byte) error {
			b := append(order.BigEndian.AppendUint64(make([]byte, 0, 8+len(body)), id), body...)
			sending.Lock()
			defer sending.Unlock()
			return stream.SendMsg(&b)
		})
	}}, nil
}
