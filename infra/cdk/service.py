"""The optional container: ``stepwell server --aws`` behind a load balancer, for long polls and short latencies.

It shares tables and queues with the functions, and both may serve at the same time. It verifies signatures by itself.
"""

from aws_cdk import CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_elasticloadbalancingv2 as elb
from aws_cdk import aws_logs as logs
from aws_cdk.aws_certificatemanager import Certificate
from constructs import Construct

from cell import Cell, Service
from functions import CHANGE, LOG, MAKE, READ, SEND, TAKE, Need, allow, environment, retention
from storage import Storage

PORT = 7400
LONGEST_POLL = Duration.seconds(90)
"""How long the balancer leaves a silent connection open: longer than the longest poll."""

NEED = Need(
    # Asks for the address of the table's stream, which it reads itself.
    exec=(*LOG, "DescribeTable"),
    timer=(*READ, *CHANGE, "DescribeTable"),
    ctl=(*READ, *CHANGE, "DeleteItem"),
    vis=(*READ, "BatchGetItem", *CHANGE, "DeleteItem"),
    blobs=("GetObject", "PutObject", "DeleteObject"),
    task_queues=(*SEND, *MAKE, "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"),
    timer_queue=(*SEND, *TAKE),
    failure_queue=SEND,  # what its reader of the stream, or nobody, can handle
    signs_tokens=True,
)


class ContainerService(Construct):
    """Tasks on Fargate (Arm) in a network of their own without a NAT gateway, behind a balancer inside of it."""

    def __init__(self, scope: Construct, name: str, cell: Cell, service: Service, storage: Storage) -> None:
        super().__init__(scope, name)
        self._cell, self._settings = cell, service
        self.network = self._network()
        self.tasks = self._tasks(storage)
        self.role = self.tasks.task_role
        self.service = ecs.FargateService(
            self,
            "Service",
            cluster=ecs.Cluster(self, "Cluster", vpc=self.network, container_insights_v2=ecs.ContainerInsights.ENABLED),
            task_definition=self.tasks,
            desired_count=service.count,
            # A public address is how a task reaches the services that have no endpoint here; nothing may call it.
            assign_public_ip=True,
            min_healthy_percent=100,
            circuit_breaker=ecs.DeploymentCircuitBreaker(rollback=True),
        )
        self.balancer = self._balancer()
        host = self.balancer.load_balancer_dns_name
        CfnOutput(scope, "ServiceHost", value=host, description="What the certificate's name points to")

    def _network(self) -> ec2.Vpc:
        network = ec2.Vpc(
            self,
            "Network",
            max_azs=2,
            nat_gateways=0,
            subnet_configuration=[ec2.SubnetConfiguration(name="tasks", subnet_type=ec2.SubnetType.PUBLIC)],
        )
        network.add_gateway_endpoint("Tables", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
        network.add_gateway_endpoint("Blobs", service=ec2.GatewayVpcEndpointAwsService.S3)
        return network

    def _tasks(self, storage: Storage) -> ecs.FargateTaskDefinition:
        cell = self._cell
        tasks = ecs.FargateTaskDefinition(
            self,
            "Tasks",
            family=f"{cell.prefix}-server",
            cpu=1024,
            memory_limit_mib=2048,
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=ecs.CpuArchitecture.ARM64, operating_system_family=ecs.OperatingSystemFamily.LINUX
            ),
        )
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/stepwell/{cell.name}/server",
            retention=retention(cell.log_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        tasks.add_container(
            "server",
            image=ecs.ContainerImage.from_registry(self._settings.image),
            command=["server", "--aws", "--host", "0.0.0.0", "--port", str(PORT), "--log-format", "json"],
            environment=environment(cell, storage),
            logging=ecs.LogDrivers.aws_logs(stream_prefix="server", log_group=log),
            port_mappings=[ecs.PortMapping(container_port=PORT)],
            # Polls are ended and what is being committed is finished before the process goes.
            stop_timeout=Duration.seconds(30),
        )
        allow(tasks.task_role, cell, storage, NEED)
        storage.tables.exec.grant_stream_read(tasks.task_role)
        return tasks

    def _balancer(self) -> elb.ApplicationLoadBalancer:
        balancer = elb.ApplicationLoadBalancer(
            self,
            "Balancer",
            vpc=self.network,
            internet_facing=False,
            idle_timeout=LONGEST_POLL,
            drop_invalid_header_fields=True,
        )
        listener = balancer.add_listener(
            "Https",
            port=443,
            open=False,
            ssl_policy=elb.SslPolicy.TLS13_RES,
            certificates=[Certificate.from_certificate_arn(self, "Certificate", self._settings.certificate_arn)],
        )
        listener.connections.allow_from(ec2.Peer.ipv4(self.network.vpc_cidr_block), ec2.Port.tcp(443), "workers")
        listener.add_targets(
            "Server",
            port=PORT,
            protocol=elb.ApplicationProtocol.HTTP,
            targets=[self.service],
            deregistration_delay=Duration.seconds(30),
            health_check=elb.HealthCheck(path="/healthz", interval=Duration.seconds(10)),
        )
        return balancer
