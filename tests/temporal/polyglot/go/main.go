// polyglot HOST:PORT runs each step, and says of each on a line of JSON how it went.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

const stepLimit = 60 * time.Second

type told struct {
	Step   string `json:"step"`
	Passed bool   `json:"passed"`
	Reason string `json:"reason"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: polyglot HOST:PORT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address string) error {
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	connected, err := client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(slog.New(handler))})
	if err != nil {
		return err
	}
	defer connected.Close()
	steps := newSteps(connected)
	serving := worker.New(connected, steps.taskQueue, worker.Options{})
	register(serving)
	for _, activity := range []any{greet, refuse, countUp, beside} {
		serving.RegisterActivity(activity)
	}
	if err := serving.Start(); err != nil {
		return err
	}
	defer serving.Stop()
	for _, step := range steps.all() {
		if err := tell(step); err != nil {
			return err
		}
	}
	return nil
}

func register(registry interface{ RegisterWorkflow(any) }) {
	for _, workflow := range workflows {
		registry.RegisterWorkflow(workflow)
	}
}

func tell(step step) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	line := told{Step: step.name, Passed: true}
	if err := step.run(ctx); err != nil {
		line.Passed, line.Reason = false, err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}
