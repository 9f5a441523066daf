"""How fast the service is: latencies by route over the last minute, counters for ever; as JSON and for Prometheus."""

import bisect
import math
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

#: Upper ends of the buckets in seconds: a quarter more each time, from 0.1 ms to half a minute.
EDGES = [1e-4 * 1.25**i for i in range(57)]
_HALF = 30.0


class Latency:
    """A histogram of the last half to whole minute, and one of all time."""

    def __init__(self) -> None:
        self.total, self.seconds = [0] * (len(EDGES) + 1), 0.0
        self._now, self._before = [0] * (len(EDGES) + 1), [0] * (len(EDGES) + 1)
        self._since = time.monotonic()

    def add(self, seconds: float) -> None:
        """Take in one request."""
        self._turn()
        bucket = bisect.bisect_left(EDGES, seconds)
        self.total[bucket] += 1
        self._now[bucket] += 1
        self.seconds += seconds

    def _turn(self) -> None:
        passed = time.monotonic() - self._since
        if passed > _HALF:
            empty = [0] * (len(EDGES) + 1)
            self._before = self._now if passed < 2 * _HALF else empty[:]
            self._now, self._since = empty, time.monotonic()

    def facts(self) -> dict[str, Any]:
        """Requests in all, a second, and percentiles in milliseconds: upper ends of buckets."""
        self._turn()
        recent = [a + b for a, b in zip(self._now, self._before, strict=True)]
        span = time.monotonic() - self._since + (_HALF if any(self._before) else 0.0)
        facts: dict[str, Any] = {"requests": sum(self.total), "per_second": round(sum(recent) / max(span, 1.0), 2)}
        for name, share in (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99)):
            facts[name] = _percentile(recent, share)
        return facts


def _percentile(counts: list[int], share: float) -> float | None:
    wanted, seen = share * sum(counts), 0
    if not wanted:
        return None
    for edge, count in zip([*EDGES, EDGES[-1]], counts, strict=True):
        seen += count
        if seen >= wanted:
            return round(1e3 * edge, 3)
    return None


class Telemetry:
    """All that is counted of requests."""

    def __init__(self) -> None:
        self.routes: dict[str, Latency] = {}
        self.answers: Counter[tuple[str, int]] = Counter()
        self.refused: Counter[str] = Counter()
        self.started = time.time()

    def add(self, route: str, status: int, seconds: float) -> None:
        """Take in one answer."""
        self.answers[route, status] += 1
        if status < 400:
            if route not in self.routes:
                self.routes[route] = Latency()
            self.routes[route].add(seconds)

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "uptime_seconds": round(time.time() - self.started, 1),
            "latency": {route: latency.facts() for route, latency in sorted(self.routes.items())},
            "statuses": {f"{route} {status}": n for (route, status), n in sorted(self.answers.items())},
            "refused": dict(self.refused),
        }


class Exposition:
    """The figures for Prometheus: a collector of its registry."""

    def __init__(self, telemetry: Telemetry, pipeline: Any) -> None:
        self.telemetry, self.pipeline = telemetry, pipeline
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def text(self) -> bytes:
        """The page."""
        return generate_latest(self.registry)

    def describe(self) -> list[Metric]:
        """Nothing: what there is shows when it is collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All figures."""
        pipeline, telemetry = self.pipeline, self.telemetry
        answers = CounterMetricFamily("csdpp_answers", "Answers by route and status", labels=["route", "status"])
        for (route, status), n in telemetry.answers.items():
            answers.add_metric([route, str(status)], n)
        yield answers
        refused = CounterMetricFamily("csdpp_refused", "Refused requests by code", labels=["code"])
        for code, n in telemetry.refused.items():
            refused.add_metric([code], n)
        yield refused
        seconds = HistogramMetricFamily("csdpp_request_seconds", "Latency of good answers", labels=["route"])
        for route, latency in telemetry.routes.items():
            seen, buckets = 0, []
            for edge, n in zip([*EDGES, math.inf], latency.total, strict=True):
                seen += n
                buckets.append(("+Inf" if math.isinf(edge) else f"{edge:.6g}", seen))
            seconds.add_metric([route], buckets, latency.seconds)
        yield seconds
        tally = pipeline.learning.tally.facts()
        yield CounterMetricFamily("csdpp_rows_learned", "Answers learned", value=pipeline.learning.seq)
        yield GaugeMetricFamily("csdpp_rows_waiting", "Rows let in and not done yet", value=pipeline.waiting)
        yield GaugeMetricFamily("csdpp_labels", "Labels of the model", value=len(pipeline.names.label_list))
        yield GaugeMetricFamily("csdpp_features", "Features of the model", value=len(pipeline.names.feature_list))
        yield GaugeMetricFamily("csdpp_ready", "Whether it can learn", value=float(not pipeline.trouble))
        yield GaugeMetricFamily("csdpp_snapshot_seq", "Answers in the last snapshot", value=pipeline.snapshot["seq"])
        for name, key in (("csdpp_cost", "costs"), ("csdpp_recent_cost", "recent")):
            costs = GaugeMetricFamily(name, "Mean cost of predictions before learning", labels=["cost"])
            for cost, value in tally[key].items():
                costs.add_metric([cost], value)
            yield costs
