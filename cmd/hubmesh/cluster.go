package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/hubmesh/hubmesh"
)

// cluster are the flags that make a server one silo of many.
type cluster struct {
	ClusterListen     string   `help:"Address at which other silos are accepted: makes this server one silo of a cluster on the database of --postgres, where the others are found." placeholder:"HOST:PORT"`
	Advertise         string   `help:"Address at which other silos reach this one. Default: that of --cluster-listen." placeholder:"HOST:PORT"`
	Name              string   `help:"Name of this silo; one that comes back keeps it. Default: its address." placeholder:"NAME"`
	ClusterSecretFile folder   `help:"File with the secret that all silos share, of at least 16 random bytes." placeholder:"FILE"`
	NodeTypes         []string `help:"Node types whose nodes this silo serves, such as Story,Comment; other silos serve the rest. Default: every type." placeholder:"A,B"`
}

// maxSiloName is the longest name of a silo, in bytes.
const maxSiloName = 128

// check refuses flags that can not be meant together.
func (c *cluster) check(postgres string) error {
	if c.ClusterListen == "" {
		for flag, given := range map[string]bool{"--advertise": c.Advertise != "", "--name": c.Name != "", "--cluster-secret-file": c.ClusterSecretFile != "", "--node-types": len(c.NodeTypes) > 0} {
			if given {
				return fmt.Errorf("%s is for a silo: pass --cluster-listen HOST:PORT as well", flag)
			}
		}
		return nil
	}
	if postgres == "" {
		return errors.New("--cluster-listen needs --postgres URL: the silos share a database")
	}
	if c.ClusterSecretFile == "" {
		return errors.New("--cluster-listen needs --cluster-secret-file FILE: the same file for every silo, such as one made by `openssl rand -base64 32`")
	}
	if len(c.Name) > maxSiloName {
		return fmt.Errorf("--name has %d bytes; want at most %d", len(c.Name), maxSiloName)
	}
	host, err := hostPort("--cluster-listen", c.ClusterListen, "127.0.0.1:7946")
	if err != nil {
		return err
	}
	if c.Advertise == "" {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			return fmt.Errorf("--cluster-listen '%s' names no host that other silos can dial: pass --advertise HOST:PORT", c.ClusterListen)
		}
		return nil
	}
	host, err = hostPort("--advertise", c.Advertise, "10.0.0.7:7946")
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return fmt.Errorf("--advertise '%s' names no host that other silos can dial", c.Advertise)
	}
	return err
}

// hostPort checks an address and returns its host.
func hostPort(flag, text, example string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return "", fmt.Errorf("%s '%s': want HOST:PORT, such as %s", flag, text, example)
	}
	return host, nil
}

// options reads the secret; nil where this server is no silo.
func (c *cluster) options() (*hubmesh.Cluster, error) {
	if c.ClusterListen == "" {
		return nil, nil
	}
	secret, err := os.ReadFile(string(c.ClusterSecretFile))
	if err != nil {
		return nil, usage(fmt.Errorf("--cluster-secret-file: %w; make one with `openssl rand -base64 32`, the same for every silo", err))
	}
	secret = bytes.TrimSpace(secret)
	if len(secret) < hubmesh.MinClusterSecret {
		return nil, usage(fmt.Errorf("--cluster-secret-file '%s' holds %d bytes; want at least %d random ones, such as by `openssl rand -base64 32`", c.ClusterSecretFile, len(secret), hubmesh.MinClusterSecret))
	}
	return &hubmesh.Cluster{Listen: c.ClusterListen, Advertise: c.Advertise, Name: c.Name, Secret: secret, NodeTypes: c.NodeTypes}, nil
}

type clusterCmd struct {
	Status clusterStatusCmd `cmd:"" help:"Ask every silo for its view, slots, claims, refusals, repairs and feed."`
}

type clusterStatusCmd struct{ remote }

// Run prints what the silos say.
func (c *clusterStatusCmd) Run(ctx context.Context, s std) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	status, err := server.ClusterStatus(ctx)
	if err != nil {
		return err
	}
	return s.print(status)
}
