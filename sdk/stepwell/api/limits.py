"""Every limit of the API, with its number. See docs/semantics.md, rows DA-08, DA-11, MS-04, MS-07, AC-35, LC-45."""

from datetime import timedelta

MAX_ID_BYTES = 1_000
"""Workflow ids, activity ids, timer ids, types, signal and query names, task queues, reasons, identities (DA-11)."""

MAX_NAMESPACE_BYTES = 255
MAX_NONCE_BYTES = 100
MAX_PAYLOAD_BYTES = 2 * 1024 * 1024
"""One argument list, result, heartbeat or failure, encoded (DA-08)."""

WARN_PAYLOAD_BYTES = 512 * 1024
MAX_TRANSITION_BYTES = 4 * 1024 * 1024
"""All that one request adds to a history (DA-08)."""

MAX_REQUEST_BYTES = 8 * 1024 * 1024
"""Body of one HTTP request; larger ones are refused with 413."""

MAX_MEMO_BYTES = 2 * 1024 * 1024
MAX_FAILURE_MESSAGE_BYTES = 16 * 1024
"""A failure's message, and separately its stack trace, are cut to this (UTF-8 bytes), with a marker."""

MAX_FAILURE_CAUSES = 20
"""Depth of a chain of causes; what lies deeper is dropped."""

MAX_PENDING_FAILURE_BYTES = 4 * 1024
"""The last failure kept with a pending activity (AC-36)."""

MAX_PENDING_ACTIVITIES = 2_000
MAX_PENDING_TIMERS = 2_000
MAX_PENDING_CHILDREN = 2_000
MAX_PENDING_EXTERNAL_SIGNALS = 2_000
MAX_PENDING_EXTERNAL_CANCELS = 2_000
MAX_WAITERS = 100
"""Runs that watch the end of one workflow without being its parent (CH-18)."""

MAX_BUFFERED_EVENTS = 100
MAX_BUFFERED_BYTES = 2 * 1024 * 1024
MAX_PLACED_EVENTS = 500
"""Unplaced events that one workflow task shows at once (design section 4)."""

MAX_PLACED_BYTES = 1024 * 1024
MAX_SIGNALS_PER_RUN = 10_000
MAX_COMMANDS_PER_TASK = 10_000
MAX_UPDATES_IN_FLIGHT = 10
MAX_UPDATE_BYTES_IN_FLIGHT = 2 * 1024 * 1024
MAX_UPDATES_PER_RUN = 2_000
SUGGEST_CONTINUE_EVENTS = 4_096
"""Workflow code is told from here on that it should continue as new."""

SUGGEST_CONTINUE_BYTES = 4 * 1024 * 1024
SUGGEST_CONTINUE_UPDATES = MAX_UPDATES_PER_RUN * 9 // 10
WARN_HISTORY_EVENTS = 10_240
WARN_HISTORY_BYTES = 10 * 1024 * 1024
MAX_HISTORY_EVENTS = 51_200
"""A run that would grow past this is terminated, and says so."""

MAX_HISTORY_BYTES = 50 * 1024 * 1024
MAX_IMPORT_BYTES = MAX_TRANSITION_BYTES
"""Of a history that comes from elsewhere, as JSON: it is one commit (LC-46)."""

MAX_SEARCH_ATTRIBUTES = 100
MAX_SEARCH_ATTRIBUTE_BYTES = 2 * 1024
MAX_SEARCH_ATTRIBUTES_BYTES = 40 * 1024
"""Of one run: names, bytes of one value, bytes together (VI-08)."""

WARN_STATE_BYTES = 1024 * 1024
MAX_STATE_BYTES = 8 * 1024 * 1024
"""All that a run waits for and remembers, besides its history (DA-10). It rides in every commit."""

MAX_SUMMARY_BYTES = 400
MAX_DETAILS_BYTES = 20_000
"""Texts that people read beside a workflow, an activity or a timer (PM-27)."""

HISTORY_PAGE_EVENTS = 256
MAX_HISTORY_PAGE_EVENTS = 1_000
MAX_LIST_PAGE = 1_000
MAX_ARCHIVE_SCAN = 200
"""Archived runs that one call of ListArchivedWorkflows looks at."""

MAX_TASKS_PER_POLL = 100
MAX_OUTCOMES_PER_REQUEST = 1_000
MAX_COMPLETIONS_PER_REQUEST = 100

MAX_NON_RETRYABLE_TYPES = 100
MAX_NON_RETRYABLE_TYPE_LENGTH = 1_000
"""Of a retry policy: how many names of error types, and characters of each."""

DEFAULT_PRIORITY = 3
MAX_PRIORITY = 5
"""Priorities are 1 to this, lower first."""

MAX_FAIRNESS_KEY_BYTES = 64
MIN_FAIRNESS_WEIGHT = 0.001
MAX_FAIRNESS_WEIGHT = 1_000.0
MAX_TASKS_PER_SECOND = 1_000_000.0
"""Highest rate limit of a task queue that means something."""

DEFAULT_WORKFLOW_TASK_TIMEOUT = timedelta(seconds=10)
MAX_WORKFLOW_TASK_TIMEOUT = timedelta(seconds=120)
MAX_DURATION = timedelta(days=3650)
"""Longest timer or timeout that is accepted; ten years."""

POLL_TIMEOUT = timedelta(seconds=20)
"""Longest wait of one long poll at the server (TQ-06, and what SQS allows)."""

POLLER_SEEN = timedelta(minutes=5)
"""A poller counts as serving its task queue for this long after its last poll (TQ-21)."""

QUERY_TIMEOUT = timedelta(seconds=10)
MAX_QUERY_TIMEOUT = timedelta(seconds=30)
"""For callers that ask for more than the default."""
QUERY_NO_POLLER = timedelta(seconds=20)
"""A query is refused at once when no worker polled the task queue for this long (MS-23)."""

DEFAULT_RETENTION = timedelta(days=7)

ARCHIVE_AFTER = timedelta(minutes=5)
"""How long behind its close a run is archived, where its namespace is (OP-06)."""

MAX_SCHEDULE_PARTS = 100
"""Calendars, intervals and cron strings of one schedule together, and separately its exclusions."""

MAX_CALENDAR_RANGES = 100
"""Ranges of one part of a calendar."""

MAX_CRON_BYTES = 1_000
MIN_SCHEDULE_INTERVAL = timedelta(seconds=1)
MAX_TIME_ZONE_BYTES = 32 * 1024
MAX_NOTE_BYTES = 4_000
"""Notes of schedules and comments of calendars."""

MIN_CATCHUP_WINDOW = timedelta(seconds=10)
DEFAULT_CATCHUP_WINDOW = timedelta(days=365)
MAX_SCHEDULE_BUFFER = 1_000
"""Actions of one schedule that wait for the end of another (LC-35)."""

MAX_BACKFILLS_PER_PATCH = 100

MAX_BACKFILL_ACTIONS = 1_000_000
"""Of one backfill whose overlap policy starts each of them: nine hours at the rate of starts."""

MAX_SCHEDULE_CONCURRENCY = 100
"""Runs of one schedule that may be open at the same time under a ``concurrency_limit``."""

MAX_MATCHING_TIMES = 1_000
"""Times in one page of a preview."""

MAX_SCHEDULE_BYTES = 200_000
"""Of a definition with its memo and search attributes; what is known of the schedule is kept beside it."""

SCHEDULE_STARTS_PER_SECOND = 30
"""Runs that the schedules of one namespace start (LC-42), for each process that serves it."""

SCHEDULE_RECENT_ACTIONS = 10
SCHEDULE_FUTURE_ACTIONS = 10
SCHEDULE_LIST_ACTIONS = 5
EXHAUSTED_SCHEDULE_RETENTION = timedelta(days=7)
"""A schedule that can never act again is deleted after this (LC-32)."""
MIN_RETENTION = timedelta(hours=1)
ANY_CALLER = "*"
"""Among the callers that a namespace allows: all."""
MAX_CALLERS_ALLOWED = 100
MAX_NAMESPACE_NOTES = 100
MAX_NAMESPACE_NOTE_BYTES = 1_000
"""How many notes a namespace has, and bytes of the name and of the value of each."""

MAX_REMOVAL_FAILURES = 20
"""Workflows that cannot be deleted with their namespace and that its description names."""

MIN_NAMESPACE_PAYLOAD_BYTES = 1_024
MAX_LONG_POLLS = 100_000

MAX_BATCH_EXECUTIONS = 1_000
"""Workflows in the list of one batch operation (LC-44)."""

MIN_BATCH_RATE = 0.001
MAX_BATCH_RATE = 50
MAX_BATCH_CONCURRENCY = 5
"""Workflows a second, and at a time, of a batch operation."""

MAX_BATCH_FAILURES = 50
"""Those that a batch operation reports with their causes."""

MAX_BATCH_BYTES = 150_000
"""Of a batch operation without its list."""

MAX_BETWEEN_RUNS = 3_600
"""Seconds; the longest time for which an installation refuses starts of an id behind the one before (LC-06)."""

MAX_DEDUPLICATED_BYTES = 300_000
"""Of a start with a deduplication key, encoded: it is kept with the key until it is done (LC-48)."""

MIN_DEDUPLICATION_TTL = timedelta(milliseconds=100)
MAX_DEDUPLICATION_TTL = timedelta(days=365)

MAX_CALLBACKS = 32
"""Completion callbacks of one workflow (LC-10)."""

MAX_CALLBACK_URL = 1_000
MAX_CALLBACK_BYTES = 65_536
"""Bytes of URLs and headers of all callbacks of a workflow; they ride in its state."""

MIN_ID_STARTS_PER_SECOND = 0.001
MAX_ID_STARTS_PER_SECOND = 1_000
"""Bounds of the rate of starts of one workflow id that an installation may set (LC-06)."""

MAX_EXPORTS = 20
"""Exports that run at a time in a namespace."""

MAX_EXPORT_CONCURRENCY = 4
EXPORT_PAGE = 20
"""Runs that an export writes between two notes of how far it is."""

MAX_EXPORT_FAILURES = 50
"""Shown of one; its list has all."""

MAX_EXPORT_BYTES = 100_000
"""Of what an export is asked for."""
