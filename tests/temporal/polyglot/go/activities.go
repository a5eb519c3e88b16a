package main

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

type refusal struct {
	By    string `json:"by"`
	Codes []int  `json:"codes"`
}

type span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// greet fails at its first attempt, so that what comes back was retried by the server.
func greet(ctx context.Context, name string) (string, error) {
	attempt := activity.GetInfo(ctx).Attempt
	if attempt == 1 {
		return "", temporal.NewApplicationError("not yet", "NotYet")
	}
	return fmt.Sprintf("Hello, %s, at attempt %d", name, attempt), nil
}

func refuse(_ context.Context, reason string) error {
	return temporal.NewNonRetryableApplicationError(reason, "Refused", nil, refusal{By: "Go", Codes: []int{4, 2}})
}

// countUp goes on where the heartbeat of its first attempt had come to.
func countUp(ctx context.Context, to int) (span, error) {
	var from int
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &from); err != nil {
			return span{}, err
		}
	}
	if activity.GetInfo(ctx).Attempt == 1 {
		activity.RecordHeartbeat(ctx, to-1)
		return span{}, temporal.NewApplicationError("half way", "HalfWay")
	}
	return span{From: from, To: to}, nil
}

// beside is carried out as a local activity.
func beside(_ context.Context, name string) (string, error) {
	return "beside " + name, nil
}
