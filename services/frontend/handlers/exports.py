"""Exports: started, looked at, stopped."""

from stepwell.api import requests as r

from ...exporter.exports import Exports
from ...history.engine import Engine
from .. import validation_exports as validation


async def start_export(engine: Engine, request: r.StartExportRequest) -> r.StartExportResponse:
    validation.start_export(request)
    return await engine.attached(Exports).start(request)


async def describe_export(engine: Engine, request: r.DescribeExportRequest) -> r.DescribeExportResponse:
    validation.job(request.namespace, request.job_id)
    return await engine.attached(Exports).describe(request)


async def stop_export(engine: Engine, request: r.StopExportRequest) -> r.StopExportResponse:
    validation.stop_export(request)
    return await engine.attached(Exports).stop(request)


async def list_exports(engine: Engine, request: r.ListExportsRequest) -> r.ListExportsResponse:
    after, limit = validation.list_exports(request)
    found = await engine.attached(Exports).page(request.namespace, after, limit + 1)
    more = found[limit - 1].job_id.encode() if len(found) > limit else b""
    return r.ListExportsResponse(exports=tuple(found[:limit]), next_page_token=more)
