"""The HTTP API: one route for each operation of the product's own table, all of them behind IAM."""

import json

from aws_cdk import Aws, CfnOutput, RemovalPolicy
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from cell import Cell
from functions import Functions, retention
from stepwell_server.frontend.routes import ROUTES

ANY_PATH = "/api/v1/{proxy+}"
"""For ids that hold a slash: the API decodes a path before it looks for a route, so theirs has a segment too many. The
function finds the operation by itself, and access is granted by path here too."""

LOGGED = {
    "request": "requestId",
    "at": "requestTime",
    "caller": "identity.userArn",
    "address": "identity.sourceIp",
    "path": "path",
    "route": "routeKey",
    "status": "status",
    "error": "error.message",
    "milliseconds": "responseLatency",
}
"""What the access log says of a call, if there is one: who asked for what, and the answer's status."""


class Api(Construct):
    """Every route asks for a signature; there is nothing that anybody may call without one."""

    def __init__(self, scope: Construct, name: str, cell: Cell, functions: Functions) -> None:
        super().__init__(scope, name)
        integration = HttpLambdaIntegration("Frontend", functions.frontend)
        self.api = apigatewayv2.HttpApi(
            self,
            "HttpApi",
            api_name=cell.prefix,
            description=f"Stepwell, cell {cell.name}",
            default_authorizer=HttpIamAuthorizer(),
            create_default_stage=False,
        )
        self._stage(cell)
        for path in [route.operation.path for route in ROUTES] + [ANY_PATH]:
            self.api.add_routes(path=path, methods=[apigatewayv2.HttpMethod.POST], integration=integration)
        CfnOutput(scope, "Url", value=self.api.api_endpoint, description="For Client.connect")

    def _stage(self, cell: Cell) -> None:
        stage = apigatewayv2.HttpStage(self, "Stage", http_api=self.api, stage_name="$default", auto_deploy=True)
        if not cell.access_log:
            return
        log = logs.LogGroup(
            self,
            "AccessLog",
            log_group_name=f"/stepwell/{cell.name}/api",
            retention=retention(cell.log_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        line = {name: f"$context.{where}" for name, where in LOGGED.items()}
        settings = apigatewayv2.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(line)
        )
        resource = stage.node.default_child
        assert isinstance(resource, apigatewayv2.CfnStage)
        resource.access_log_settings = settings

    @property
    def arn(self) -> str:
        """What a policy names, up to the path. The API has one stage and one method."""
        return f"arn:{Aws.PARTITION}:execute-api:{Aws.REGION}:{Aws.ACCOUNT_ID}:{self.api.api_id}/*/POST"
