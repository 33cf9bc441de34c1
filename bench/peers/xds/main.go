// Command xds is go-control-plane as its users have it: a delta ADS server over one of its caches, for clients
// that all get the same.
//
// It is told what to do on its standard input, a line each, and answers with a line:
//
//	add SERVICE ADDRESS  one more endpoint, before it serves; no answer
//	serve                the answer is the address that it listens on
//	set SERVICE ADDRESS  one more endpoint, and all that subscribe are told; the answer comes when the cache has it
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
)

// Everyone is the node that all clients are to the snapshot cache, because all get the same.
const everyone = "everyone"

// A publisher puts an assignment where its subscribers get it from.
type publisher interface {
	cache.Cache
	publish(name string) error
}

// Services are what is registered, as Envoy is told.
type services map[string]*endpoint.ClusterLoadAssignment

func main() {
	kind := flag.String("cache", "linear", "linear or snapshot")
	flag.Parse()
	if err := run(*kind); err != nil {
		log.Fatal(err)
	}
}

func run(kind string) error {
	known := services{}
	var serving publisher
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 3 && words[0] == "add":
			if err := known.add(words[1], words[2]); err != nil {
				return err
			}
		case len(words) == 1 && words[0] == "serve":
			var err error
			if serving, err = newPublisher(kind, known); err != nil {
				return err
			}
			if err = serve(serving); err != nil {
				return err
			}
		case len(words) == 3 && words[0] == "set" && serving != nil:
			if err := known.add(words[1], words[2]); err != nil {
				return err
			}
			if err := serving.publish(words[1]); err != nil {
				return err
			}
			fmt.Println("set")
		default:
			return fmt.Errorf("not understood: %q", lines.Text())
		}
	}
	return lines.Err()
}

// Serve listens, and does not return an error after that.
func serve(from cache.Cache) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	// Buffers of connections that have nothing to say are given back, and those for reading are as large as what
	// clients say: it costs no CPU here, and halves the memory.
	rpc := grpc.NewServer(grpc.SharedWriteBuffer(true), grpc.ReadBufferSize(4<<10))
	discovery.RegisterAggregatedDiscoveryServiceServer(rpc, server.NewServer(context.Background(), from, nil))
	go func() { log.Fatal(rpc.Serve(listener)) }()
	fmt.Println(listener.Addr())
	return nil
}

// Add does not change an assignment that a cache has, but makes another.
func (known services) add(name, address string) error {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return err
	}
	added := &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{
		Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
			Address:       host,
			PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)},
		}}},
	}}}
	var before []*endpoint.LbEndpoint
	if assignment, ok := known[name]; ok {
		before = assignment.GetEndpoints()[0].GetLbEndpoints()
	}
	after := append(before[:len(before):len(before)], added)
	known[name] = &endpoint.ClusterLoadAssignment{
		ClusterName: name,
		Endpoints:   []*endpoint.LocalityLbEndpoints{{LbEndpoints: after}},
	}
	return nil
}

func newPublisher(kind string, known services) (publisher, error) {
	switch kind {
	case "linear":
		resources := make(map[string]types.Resource, len(known))
		for name, assignment := range known {
			resources[name] = assignment
		}
		made := cache.NewLinearCache(resource.EndpointType, cache.WithInitialResources(resources))
		return linear{made, known}, nil
	case "snapshot":
		made := &snapshot{SnapshotCache: cache.NewSnapshotCache(true, same{}, nil), known: known}
		return made, made.publish("")
	}
	return nil, errors.New("-cache is linear or snapshot")
}

type linear struct {
	*cache.LinearCache
	known services
}

func (l linear) publish(name string) error {
	return l.UpdateResource(name, l.known[name])
}

type snapshot struct {
	cache.SnapshotCache
	known   services
	version uint64
}

func (s *snapshot) publish(string) error {
	s.version++
	resources := make([]types.Resource, 0, len(s.known))
	for _, assignment := range s.known {
		resources = append(resources, assignment)
	}
	made, err := cache.NewSnapshot(strconv.FormatUint(s.version, 10), map[resource.Type][]types.Resource{
		resource.EndpointType: resources,
	})
	if err != nil {
		return err
	}
	return s.SetSnapshot(context.Background(), everyone, made)
}

// Same takes all nodes for one.
type same struct{}

func (same) ID(*core.Node) string { return everyone }
