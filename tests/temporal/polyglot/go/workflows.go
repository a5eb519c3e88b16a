package main

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const pause = 10 * time.Millisecond

// steps has a workflow for each step, and those that they start.
var workflows = []any{activityStep, timerStep, signalStep, queryStep, updateStep, childStep, twice, again}

type activityResult struct {
	Greeting string
	Counted  span
	Beside   string
	Refused  string
	Refusal  refusal
}

func activityStep(ctx workflow.Context, name string) (*activityResult, error) {
	retry := &temporal.RetryPolicy{InitialInterval: 50 * time.Millisecond}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         retry,
	})
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 5 * time.Second})
	result := &activityResult{}
	if err := workflow.ExecuteActivity(ctx, greet, name).Get(ctx, &result.Greeting); err != nil {
		return nil, err
	}
	if err := workflow.ExecuteActivity(ctx, countUp, 10).Get(ctx, &result.Counted); err != nil {
		return nil, err
	}
	if err := workflow.ExecuteLocalActivity(ctx, beside, name).Get(ctx, &result.Beside); err != nil {
		return nil, err
	}
	err := workflow.ExecuteActivity(ctx, refuse, "no such thing").Get(ctx, nil)
	var failed *temporal.ActivityError
	var cause *temporal.ApplicationError
	if !errors.As(err, &failed) || !errors.As(err, &cause) {
		return nil, temporal.NewNonRetryableApplicationError("the refusal did not arrive", "", err)
	}
	result.Refused = cause.Type() + ": " + cause.Message()
	return result, cause.Details(&result.Refusal)
}

type timerResult struct {
	Elapsed time.Duration
	Version workflow.Version
	Drawn   int
}

// timerStep also marks what its replay must find again: a changed piece of code, and a side effect.
func timerStep(ctx workflow.Context) (*timerResult, error) {
	before := workflow.Now(ctx)
	version := workflow.GetVersion(ctx, "longer", workflow.DefaultVersion, 2)
	if err := workflow.Sleep(ctx, 300*time.Millisecond); err != nil {
		return nil, err
	}
	result := &timerResult{Elapsed: workflow.Now(ctx).Sub(before), Version: version}
	drawn := workflow.SideEffect(ctx, func(workflow.Context) any { return 7 })
	return result, drawn.Get(&result.Drawn)
}

func signalStep(ctx workflow.Context) ([]string, error) {
	approvals := workflow.GetSignalChannel(ctx, "approve")
	names := make([]string, 2)
	for i := range names {
		approvals.Receive(ctx, &names[i])
	}
	return names, nil
}

// queryStep is also asked after its end.
func queryStep(ctx workflow.Context) (string, error) {
	phase := "waiting"
	err := workflow.SetQueryHandler(ctx, "state", func(prefix string) (string, error) { return prefix + phase, nil })
	if err != nil {
		return "", err
	}
	workflow.GetSignalChannel(ctx, "approve").Receive(ctx, nil)
	phase = "approved"
	return phase, nil
}

func updateStep(ctx workflow.Context) (int, error) {
	total := 0
	add := func(ctx workflow.Context, amount int) (int, error) {
		total += amount
		err := workflow.Sleep(ctx, pause)
		return total, err
	}
	validate := func(_ workflow.Context, amount int) error { return notNegative(amount) }
	options := workflow.UpdateHandlerOptions{Validator: validate}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, "add", add, options); err != nil {
		return 0, err
	}
	err := workflow.Await(ctx, func() bool { return total >= 10 && workflow.AllHandlersFinished(ctx) })
	return total, err
}

func notNegative(value int) error {
	if value < 0 {
		return temporal.NewNonRetryableApplicationError("less than nothing", "Negative", nil)
	}
	return nil
}

func twice(_ workflow.Context, value int) (int, error) {
	return 2 * value, notNegative(value)
}

type childResult struct {
	Doubled int
	Failure string
}

func childStep(ctx workflow.Context) (*childResult, error) {
	result := &childResult{}
	if err := workflow.ExecuteChildWorkflow(ctx, twice, 21).Get(ctx, &result.Doubled); err != nil {
		return nil, err
	}
	err := workflow.ExecuteChildWorkflow(ctx, twice, -1).Get(ctx, nil)
	var failed *temporal.ChildWorkflowExecutionError
	var cause *temporal.ApplicationError
	if !errors.As(err, &failed) || !errors.As(err, &cause) {
		return nil, temporal.NewNonRetryableApplicationError("the child's failure did not arrive", "", err)
	}
	result.Failure = cause.Type()
	return result, nil
}

func again(ctx workflow.Context, left, total int) (int, error) {
	if left == 0 {
		return total, nil
	}
	if err := workflow.Sleep(ctx, pause); err != nil {
		return 0, err
	}
	return 0, workflow.NewContinueAsNewError(ctx, again, left-1, total+left)
}
