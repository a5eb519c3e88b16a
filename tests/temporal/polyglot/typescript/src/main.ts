// node dist/main.js HOST:PORT         runs each step, and says of each on a line of JSON how it went
// node dist/main.js HOST:PORT QUEUE   serves activities on this task queue until standard input ends

import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { ApplicationFailure, Client, Connection, WorkflowHandle, WorkflowUpdateFailedError } from '@temporalio/client';
import {
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  WorkflowBundleWithSourceMap,
  bundleWorkflowCode,
} from '@temporalio/worker';
import * as activities from './activities';
import * as workflows from './workflows';

const STEP_LIMIT = 60_000;
const logger = new DefaultLogger('ERROR');

class Steps {
  readonly taskQueue = `typescript-${randomUUID()}`;

  constructor(
    private readonly client: Client,
    private readonly workflowBundle: WorkflowBundleWithSourceMap,
  ) {}

  /** In the order in which they run; the last one is of the histories that the others made. */
  readonly all: Record<string, () => Promise<void>> = {
    activity: async () => {
      const result = await (await this.start(workflows.activity, ['Ada'])).result();
      const refusal = ['Refused: no such thing', '[{"by":"TypeScript","codes":[4,2]}]'];
      assert.deepEqual(result, ['Hello, Ada, at attempt 2', ...refusal]);
    },
    timer: async () => {
      const elapsed = await (await this.start(workflows.timer, [])).result();
      assert.ok(elapsed >= 290, `the timer of 300 ms fired after ${elapsed} ms`);
    },
    signal: async () => {
      const handle = await this.start(workflows.signal, []);
      await handle.signal(workflows.approve, 'Ada');
      await handle.signal(workflows.approve, 'Grace');
      assert.deepEqual(await handle.result(), ['Ada', 'Grace']);
    },
    query: async () => {
      const handle = await this.start(workflows.query, []);
      assert.equal(await handle.query(workflows.state, 'is '), 'is waiting');
      await handle.signal(workflows.approve, 'Ada');
      await handle.result();
      assert.equal(await handle.query(workflows.state, 'was '), 'was approved');
      await assert.rejects(handle.query('nothing'), /nothing/);
    },
    update: async () => {
      const handle = await this.start(workflows.update, []);
      assert.equal(await handle.executeUpdate(workflows.add, { args: [4] }), 4);
      await assert.rejects(handle.executeUpdate(workflows.add, { args: [-1] }), (error: unknown) => {
        assert.ok(error instanceof WorkflowUpdateFailedError, String(error));
        assert.ok(error.cause instanceof ApplicationFailure && error.cause.type === 'Negative', String(error.cause));
        return true;
      });
      const accepted = await handle.startUpdate(workflows.add, { args: [6], waitForStage: 'ACCEPTED' });
      assert.equal(await accepted.result(), 10);
      assert.equal(await handle.result(), 10);
    },
    child: async () => {
      assert.deepEqual(await (await this.start(workflows.child, [])).result(), [42, 'Negative']);
    },
    'continue-as-new': async () => {
      const handle = await this.start(workflows.again, [3, 0]);
      assert.equal(await handle.result(), 6);
      const last = await this.client.workflow.getHandle(handle.workflowId).describe();
      assert.notEqual(last.runId, handle.firstExecutionRunId);
      assert.equal(last.status.name, 'COMPLETED');
    },
    replay: async () => {
      for (const { workflowId } of this.handles) {
        const history = await this.client.workflow.getHandle(workflowId).fetchHistory();
        await Worker.runReplayHistory({ workflowBundle: this.workflowBundle }, history, workflowId);
      }
    },
  };

  private readonly handles: WorkflowHandle[] = [];

  private async start<A extends unknown[], R>(workflow: (...args: A) => Promise<R>, args: A) {
    const options = { taskQueue: this.taskQueue, workflowId: `${workflow.name}-${randomUUID()}` };
    const handle = await this.client.workflow.start<(...args: A) => Promise<R>>(workflow.name, {
      ...options,
      args,
    } as never);
    this.handles.push(handle as WorkflowHandle);
    return handle;
  }
}

async function withLimit(work: Promise<void>): Promise<void> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    limit = setTimeout(() => reject(new Error(`has not ended in ${STEP_LIMIT / 1000} s`)), STEP_LIMIT);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(limit));
}

async function runSteps(connection: NativeConnection, client: Client): Promise<void> {
  // once: each worker and each replay would make a bundle of its own
  const workflowBundle = await bundleWorkflowCode({ workflowsPath: require.resolve('./workflows'), logger });
  const steps = new Steps(client, workflowBundle);
  const worker = await Worker.create({
    connection,
    taskQueue: steps.taskQueue,
    workflowBundle,
    activities,
    shutdownGraceTime: '1s',
  });
  await worker.runUntil(async () => {
    for (const [step, run] of Object.entries(steps.all)) {
      let reason = '';
      try {
        await withLimit(run());
      } catch (error) {
        reason = `${error}`;
        if (error instanceof Error && error.cause) reason += `: ${error.cause}`;
      }
      console.log(JSON.stringify({ step, passed: reason === '', reason }));
    }
  });
}

async function serve(connection: NativeConnection, taskQueue: string): Promise<void> {
  const worker = await Worker.create({ connection, taskQueue, activities, shutdownGraceTime: '1s' });
  const ended = new Promise<void>((resolve) => {
    process.stdin.on('close', resolve).resume();
  });
  await worker.runUntil(ended);
}

async function main([address, taskQueue]: string[]): Promise<void> {
  Runtime.install({ logger });
  const connection = await NativeConnection.connect({ address });
  try {
    if (taskQueue) return await serve(connection, taskQueue);
    const client = new Client({ connection: await Connection.connect({ address }) });
    await runSteps(connection, client);
    await client.connection.close();
  } finally {
    await connection.close();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
