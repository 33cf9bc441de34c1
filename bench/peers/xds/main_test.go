package main

import (
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
)

// With both caches a change is told to who subscribes to its service, with all of the service's endpoints, and
// what was told before stays as it was.
func TestAChangeIsToldWhole(t *testing.T) {
	for _, kind := range []string{"linear", "snapshot"} {
		known := services{}
		for _, name := range []string{"web", "other"} {
			if err := known.add(name, "127.0.0.1:80"); err != nil {
				t.Fatal(err)
			}
		}
		first := known["web"]
		serving, err := newPublisher(kind, known)
		if err != nil {
			t.Fatal(err)
		}
		subscription := stream.NewDeltaSubscription([]string{"web", "other"}, nil, nil, false)
		request := &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType}
		told := func() []*discovery.Resource {
			responses := make(chan cache.DeltaResponse, 1)
			cancel, err := serving.CreateDeltaWatch(request, subscription, responses)
			if err != nil {
				t.Fatal(err)
			}
			if cancel != nil {
				defer cancel()
				if err := known.add("web", "127.0.0.2:80"); err != nil {
					t.Fatal(err)
				}
				if err := serving.publish("web"); err != nil {
					t.Fatal(err)
				}
			}
			response := <-responses
			subscription.SetReturnedResources(response.GetReturnedResources())
			made, err := response.GetDeltaDiscoveryResponse()
			if err != nil {
				t.Fatal(err)
			}
			return made.GetResources()
		}
		if count := len(told()); count != 2 {
			t.Errorf("%s: %d resources at first", kind, count)
		}
		changed := told()
		if len(changed) != 1 || changed[0].GetName() != "web" {
			t.Errorf("%s: then %v", kind, changed)
		}
		if len(first.GetEndpoints()[0].GetLbEndpoints()) != 1 {
			t.Errorf("%s: an assignment was changed", kind)
		}
	}
}

func TestWhatIsNoAddressIsRefused(t *testing.T) {
	known := services{}
	for _, address := range []string{"127.0.0.1", "127.0.0.1:70000", "127.0.0.1:http"} {
		if err := known.add("web", address); err == nil {
			t.Errorf("%q was added", address)
		}
	}
}
