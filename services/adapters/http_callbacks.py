"""Posts callbacks by aiohttp: no redirects, cookies or proxies of the environment, and no longer than ten seconds."""

from collections.abc import Mapping

from ..history.callback_delivery import SendFailed

SECONDS = 10.0


class HttpCallbacks:
    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        import aiohttp  # functions that never post need not load it
        from yarl import URL

        timeout = aiohttp.ClientTimeout(total=self._seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False) as session,
                session.post(
                    URL(url, encoded=True),
                    data=body,
                    headers=headers,
                    skip_auto_headers=("Content-Type",),  # a content without one is none
                    allow_redirects=False,
                ) as answer,
            ):
                return answer.status
        except TimeoutError as error:
            raise SendFailed(f"no answer within {self._seconds:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SendFailed(f"{type(error).__name__}: {error}") from error
