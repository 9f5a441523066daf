"""The dashboard: one page, whose script and style may run by their hashes alone."""

import base64
import hashlib
import re
from importlib.resources import files

PAGE = files("csdpp.service").joinpath("dashboard.html").read_text(encoding="utf-8")


def _hashes(tag: str) -> str:
    parts = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


POLICY = (
    f"default-src 'none'; script-src {_hashes('script')}; style-src {_hashes('style')}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
