// Command etcd is an etcd of one member, whose disk is a folder that goes with it.
//
// It is told what to do as ../xds is.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	folder, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		log.Fatal(err)
	}
	err = run(folder)
	if removed := os.RemoveAll(folder); err == nil {
		err = removed
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(folder string) error {
	var known []string
	var member *embed.Etcd
	defer func() {
		if member != nil {
			member.Close()
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 3 && words[0] == "add":
			known = append(known, key(words))
		case len(words) == 1 && words[0] == "serve":
			var err error
			if member, err = start(folder); err != nil {
				return err
			}
			for _, name := range known {
				if err := put(member, name); err != nil {
					return err
				}
			}
			fmt.Println(member.Clients[0].Addr())
		case len(words) == 3 && words[0] == "set" && member != nil:
			if err := put(member, key(words)); err != nil {
				return err
			}
			fmt.Println("set")
		default:
			return fmt.Errorf("not understood: %q", lines.Text())
		}
	}
	return lines.Err()
}

func key(words []string) string {
	return "/services/" + words[1] + "/" + words[2]
}

func start(folder string) (*embed.Etcd, error) {
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Dir = folder
	config.LogLevel = "error"
	// What is measured is the fan-out, and not the disk.
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = anywhere, anywhere
	config.ListenPeerUrls, config.AdvertisePeerUrls = anywhere, anywhere
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	member, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-member.Server.ReadyNotify():
		return member, nil
	case err := <-member.Err():
		return nil, err
	case <-time.After(time.Minute):
		return nil, errors.New("etcd does not get ready")
	}
}

func put(member *embed.Etcd, name string) error {
	_, err := member.Server.Put(context.Background(), &etcdserverpb.PutRequest{Key: []byte(name)})
	return err
}
