"""The real ``cdk synth`` without a network or credentials, and that the rules of cdk-nag are alive."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from aws_cdk import aws_s3 as s3

from stacks import INFRA, made

NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")


def cdk(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``scripts/infra.py test`` says where the command is, and the package that it made."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        [os.environ["CDK"], *arguments, "--output", str(folder)],
        cwd=INFRA,
        env={**kept, **NO_NETWORK, "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_synth_needs_no_network_and_no_account(tmp_path: Path) -> None:
    done = cdk("synth", "--quiet", "-c", "cell=trial", "-c", f"package={os.environ['LOCAL_PACKAGE']}", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    template = json.loads((tmp_path / "stepwell-trial.template.json").read_text())
    functions = [each for each in template["Resources"].values() if each["Type"] == "AWS::Lambda::Function"]
    assert {each["Properties"]["FunctionName"] for each in functions} >= {"stepwell-trial-frontend"}
    [package] = tmp_path.glob("asset.*")
    assert (package / "stepwell_server" / "history" / "dictionary_1.zdict").exists()
    assert (package / "stepwell" / "api" / "operations.py").exists()
    assert list((package / "stepwell" / "api" / "__pycache__").glob("operations.*.pyc")), "compiled, for cold starts"


def test_a_bad_setting_is_one_message(tmp_path: Path) -> None:
    done = cdk("synth", "--quiet", "-c", "cell=Not A Cell", folder=tmp_path)
    assert done.returncode != 0
    assert "Cannot deploy this: cell 'Not A Cell' is no name of a cell" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_package_says_what_makes_it(tmp_path: Path) -> None:
    done = cdk("synth", "--quiet", "-c", "package=/nowhere", folder=tmp_path)
    assert done.returncode != 0
    assert "scripts/infra.py package" in done.stderr


def test_what_is_not_acknowledged_fails(tmp_path: Path) -> None:
    app, stack = made(tmp_path, {})
    s3.Bucket(stack, "Open")
    with pytest.raises(RuntimeError, match=r"AwsSolutions-S1\b"):
        app.synth()
