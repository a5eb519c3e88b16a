"""Tables, bucket and queues of a cell; and the emulator that all tests on AWS share."""

import subprocess
import sys
import threading

from stepwell_server.adapters.aws.tables import create_bucket, create_queues, create_tables
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.moto_server import _SCRIPT


def test_making_a_cell_again_changes_nothing(cell: Cell, provisioning: Provisioning) -> None:
    before = [provisioning.dynamodb.describe_table(TableName=table)["Table"] for table in cell.names.tables]
    create_tables(provisioning.dynamodb, cell.names)
    create_bucket(provisioning.s3, cell.bucket, cell.region)
    assert create_queues(provisioning.sqs, cell.names).keys() == {cell.names.timer_queue, cell.names.failure_queue}
    assert [provisioning.dynamodb.describe_table(TableName=table)["Table"] for table in cell.names.tables] == before


def test_two_may_make_it_at_once(provisioning: Provisioning) -> None:
    cell = provisioning.cell()
    for table in cell.names.tables:
        provisioning.dynamodb.delete_table(TableName=table)
    errors: list[BaseException] = []

    def make() -> None:
        try:
            create_tables(provisioning.dynamodb, cell.names)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_tables_are_as_the_design_says(cell: Cell, provisioning: Provisioning) -> None:
    described = {table: provisioning.dynamodb.describe_table(TableName=table)["Table"] for table in cell.names.tables}
    log = described[cell.names.exec_table]
    assert log["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    assert not log.get("GlobalSecondaryIndexes") and not log.get("LocalSecondaryIndexes")
    assert [table for table in described if described[table].get("StreamSpecification")] == [cell.names.exec_table]
    for table in described:
        expiry = provisioning.dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert expiry["TimeToLiveStatus"] == "ENABLED" and expiry["AttributeName"] == "x"
        backups = provisioning.dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def test_the_emulator_ends_when_its_starter_does(provisioning: Provisioning) -> None:
    process = subprocess.Popen([sys.executable, str(_SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    assert int(process.stdout.readline()) > 0
    process.stdin.close()  # what the kernel does for a starter that was killed
    assert process.wait(30) == 0
    process.stdout.close()
