// Command nats is a nats-server with its defaults, without a log, on a port of its own.
//
// It is told what to do as ../xds is, but has nothing to be added or set: clients publish.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	var serving *server.Server
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() != "serve" || serving != nil {
			continue
		}
		made, err := server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		})
		if err != nil {
			return err
		}
		serving = made
		serving.Start()
		if !serving.ReadyForConnections(time.Minute) {
			return errors.New("nats-server does not get ready")
		}
		fmt.Println(serving.Addr())
	}
	return lines.Err()
}
