package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

type step struct {
	name string
	run  func(context.Context) error
}

// steps of a run share a client and a task queue, and keep what they started for the last of them, which replays it.
type steps struct {
	client    client.Client
	taskQueue string
	unique    string
	started   []client.WorkflowRun
}

func newSteps(connected client.Client) *steps {
	unique := fmt.Sprint(time.Now().UnixNano())
	return &steps{client: connected, taskQueue: "go-" + unique, unique: unique}
}

func (s *steps) all() []step {
	return []step{
		{"activity", s.activity},
		{"timer", s.timer},
		{"signal", s.signal},
		{"query", s.query},
		{"update", s.update},
		{"child", s.child},
		{"continue-as-new", s.continueAsNew},
		{"replay", s.replay},
	}
}

func (s *steps) start(ctx context.Context, name string, workflow any, arguments ...any) (client.WorkflowRun, error) {
	options := client.StartWorkflowOptions{ID: name + "-" + s.unique, TaskQueue: s.taskQueue}
	run, err := s.client.ExecuteWorkflow(ctx, options, workflow, arguments...)
	if err == nil {
		s.started = append(s.started, run)
	}
	return run, err
}

func (s *steps) activity(ctx context.Context) error {
	run, err := s.start(ctx, "activity", activityStep, "Ada")
	if err != nil {
		return err
	}
	return returns(ctx, run, activityResult{
		Greeting: "Hello, Ada, at attempt 2",
		Counted:  span{From: 9, To: 10},
		Beside:   "beside Ada",
		Refused:  "Refused: no such thing",
		Refusal:  refusal{By: "Go", Codes: []int{4, 2}},
	})
}

func (s *steps) timer(ctx context.Context) error {
	run, err := s.start(ctx, "timer", timerStep)
	if err != nil {
		return err
	}
	var got timerResult
	if err := run.Get(ctx, &got); err != nil {
		return err
	}
	if got.Elapsed < 290*time.Millisecond {
		return fmt.Errorf("the timer of 300 ms fired after %s", got.Elapsed)
	}
	return errors.Join(equal("the version", got.Version, 2), equal("the side effect", got.Drawn, 7))
}

func (s *steps) signal(ctx context.Context) error {
	run, err := s.start(ctx, "signal", signalStep)
	if err != nil {
		return err
	}
	for _, name := range []string{"Ada", "Grace"} {
		if err := s.client.SignalWorkflow(ctx, run.GetID(), run.GetRunID(), "approve", name); err != nil {
			return err
		}
	}
	return returns(ctx, run, []string{"Ada", "Grace"})
}

func (s *steps) query(ctx context.Context) error {
	run, err := s.start(ctx, "query", queryStep)
	if err != nil {
		return err
	}
	if err := s.answers(ctx, run, "is ", "is waiting"); err != nil {
		return err
	}
	if err := s.client.SignalWorkflow(ctx, run.GetID(), "", "approve", "Ada"); err != nil {
		return err
	}
	if err := returns(ctx, run, "approved"); err != nil {
		return err
	}
	if err := s.answers(ctx, run, "was ", "was approved"); err != nil {
		return err
	}
	var failed *serviceerror.QueryFailed
	if _, err := s.client.QueryWorkflow(ctx, run.GetID(), "", "nothing"); !errors.As(err, &failed) {
		return fmt.Errorf("a query that the workflow does not have ended with %T: %v", err, err)
	}
	return nil
}

func (s *steps) answers(ctx context.Context, run client.WorkflowRun, prefix, expected string) error {
	value, err := s.client.QueryWorkflow(ctx, run.GetID(), run.GetRunID(), "state", prefix)
	if err != nil {
		return err
	}
	var got string
	if err := value.Get(&got); err != nil {
		return err
	}
	return equal("the answer", got, expected)
}

func (s *steps) update(ctx context.Context) error {
	run, err := s.start(ctx, "update", updateStep)
	if err != nil {
		return err
	}
	if err := s.adds(ctx, run, 4, client.WorkflowUpdateStageCompleted, 4); err != nil {
		return err
	}
	var rejected *temporal.ApplicationError
	err = s.adds(ctx, run, -1, client.WorkflowUpdateStageCompleted, 0)
	if !errors.As(err, &rejected) || rejected.Type() != "Negative" {
		return fmt.Errorf("an update that its validator refuses ended with %T: %v", err, err)
	}
	if err := s.adds(ctx, run, 6, client.WorkflowUpdateStageAccepted, 10); err != nil {
		return err
	}
	return returns(ctx, run, 10)
}

func (s *steps) adds(
	ctx context.Context, run client.WorkflowRun, amount int, stage client.WorkflowUpdateStage, expected int,
) error {
	handle, err := s.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), UpdateName: "add", Args: []any{amount}, WaitForStage: stage,
	})
	if err != nil {
		return err
	}
	var got int
	if err := handle.Get(ctx, &got); err != nil {
		return err
	}
	return equal("the update's result", got, expected)
}

func (s *steps) child(ctx context.Context) error {
	run, err := s.start(ctx, "child", childStep)
	if err != nil {
		return err
	}
	return returns(ctx, run, childResult{Doubled: 42, Failure: "Negative"})
}

func (s *steps) continueAsNew(ctx context.Context) error {
	run, err := s.start(ctx, "continue-as-new", again, 3, 0)
	if err != nil {
		return err
	}
	first := run.GetRunID()
	if err := returns(ctx, run, 6); err != nil {
		return err
	}
	described, err := s.client.DescribeWorkflowExecution(ctx, run.GetID(), "")
	if err != nil {
		return err
	}
	last := described.GetWorkflowExecutionInfo()
	if last.GetExecution().GetRunId() == first {
		return errors.New("the last run is the first one")
	}
	return equal("the status", last.GetStatus(), enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
}

// replay exports each history as JSON, and replays what is read from there: of a chain the last run.
func (s *steps) replay(ctx context.Context) error {
	replayer := worker.NewWorkflowReplayer()
	register(replayer)
	for _, run := range s.started {
		exported, err := s.export(ctx, run.GetID())
		if err != nil {
			return err
		}
		history, err := client.HistoryFromJSON(bytes.NewReader(exported), client.HistoryJSONOptions{})
		if err != nil {
			return err
		}
		if err := replayer.ReplayWorkflowHistory(nil, history); err != nil {
			return fmt.Errorf("%s: %w", run.GetID(), err)
		}
	}
	return nil
}

func (s *steps) export(ctx context.Context, id string) ([]byte, error) {
	history := &historypb.History{}
	events := s.client.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, err
		}
		history.Events = append(history.Events, event)
	}
	return temporalproto.CustomJSONMarshalOptions{}.Marshal(history)
}

func returns[T any](ctx context.Context, run client.WorkflowRun, expected T) error {
	var got T
	if err := run.Get(ctx, &got); err != nil {
		return err
	}
	return equal("the result", got, expected)
}

func equal[T any](what string, got, expected T) error {
	if !reflect.DeepEqual(got, expected) {
		return fmt.Errorf("%s: expected %v, got %v", what, expected, got)
	}
	return nil
}
